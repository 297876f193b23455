//! Which `let`s become buffers.
//!
//! A `let` is repeated where it is used unless that would be wrong or wasteful. It is *wrong* when an
//! operand is overwritten before it is used: `let old = x[[i]]; x[[i]] = y[[i]]; y[[i]] = old;`. It is
//! *wasteful* when it computes a transcendental function and several statements, or a deeper loop, use it, or
//! when it is so large that repeating it would blow up the program.

use std::collections::BTreeSet;

use crate::build::error::{DefinitionError, SourceLocation};
use crate::build::record::recording::{Node, Recording};
use crate::build::record::value::{Clock, Value, ValueKind};

/// A statement with what it uses.
struct User<'a> {
    clock: Clock,
    loops: Vec<usize>,
    values: Vec<&'a Value>,
    /// The conditions around it, as numbers of bindings.
    conditions: Vec<usize>,
    location: Option<SourceLocation>,
}

/// A place where a tensor is written.
struct Site {
    target: usize,
    clock: Clock,
    loops: Vec<usize>,
    location: Option<SourceLocation>,
}

/// Users and sites of a whole definition.
#[derive(Default)]
struct Survey<'a> {
    users: Vec<User<'a>>,
    sites: Vec<Site>,
}

/// Decides, for each binding, whether it becomes a buffer. Values that are overwritten before they are
/// used without being bound to a name are reported in `errors`.
pub(in crate::build) fn choose_buffers(
    recording: &Recording,
    errors: &mut Vec<DefinitionError>,
) -> Vec<bool> {
    let mut survey = Survey::default();
    survey.collect(recording, &recording.body, &mut Vec::new(), &mut Vec::new());
    let mut weight = vec![0; recording.bindings.len()];
    let mut stale = vec![false; recording.bindings.len()];
    for user in &survey.users {
        for value in &user.values {
            report_stale_reads(recording, &survey, user, value, errors);
        }
        for number in bindings_used(recording, user) {
            let binding = &recording.bindings[number];
            weight[number] += if user.loops.len() > binding.depth { 2 } else { 1 };
            stale[number] |= reads(&binding.value)
                .into_iter()
                .any(|(tensor, clock)| overwritten(&survey, tensor, clock, binding.depth, user).is_some());
        }
    }
    let uses = count_uses(recording, &survey);
    let mut profiles: Vec<Profile> = Vec::new();
    for (number, binding) in recording.bindings.iter().enumerate() {
        let mut profile = Profile::of(&binding.value, &profiles);
        let large = profile.size > LARGE && uses[number] >= 2 && profile.reads;
        profile.chosen = stale[number] || large || (profile.costly && weight[number] >= 2);
        profiles.push(profile);
    }
    profiles.into_iter().map(|profile| profile.chosen).collect()
}

/// How many operations a value may have that is written out at each of its uses.
const LARGE: usize = 64;

/// How often each binding stands in a statement or in another binding.
fn count_uses(recording: &Recording, survey: &Survey<'_>) -> Vec<usize> {
    let mut uses = vec![0; recording.bindings.len()];
    let bound = recording.bindings.iter().map(|binding| &binding.value);
    for value in survey.users.iter().flat_map(|user| user.values.iter().copied()).chain(bound) {
        for_each_occurrence(value, &mut |number| uses[number] += 1);
    }
    uses
}

/// Calls `visit` for each place at which a binding stands inside a value.
fn for_each_occurrence(value: &Value, visit: &mut dyn FnMut(usize)) {
    for_each_value(value, &mut |node| {
        for operand in node.operands() {
            if let ValueKind::Bound(number) = operand.kind() {
                visit(*number);
            }
        }
    });
    if let ValueKind::Bound(number) = value.kind() {
        visit(*number);
    }
}

/// The properties that decide about a binding, with bindings without buffer written out.
struct Profile {
    /// The number of operations.
    size: usize,
    /// Whether it computes a transcendental function or a root.
    costly: bool,
    /// Whether it depends on the contents of a tensor, so that it is no index arithmetic.
    reads: bool,
    /// Whether it becomes a buffer.
    chosen: bool,
}

impl Profile {
    /// `earlier` are those of the bindings before.
    fn of(value: &Value, earlier: &[Profile]) -> Self {
        let mut profile = Profile { size: 0, costly: false, reads: false, chosen: false };
        for_each_value(value, &mut |node| {
            profile.size = profile.size.saturating_add(1);
            match node.kind() {
                ValueKind::Load(..) => profile.reads = true,
                ValueKind::Unary(op, _) => profile.costly |= op.cost().is_expensive(),
                ValueKind::Binary(op, ..) => profile.costly |= op.is_function(),
                _ => {}
            }
        });
        for_each_occurrence(value, &mut |number| {
            let inner = &earlier[number];
            profile.reads |= inner.reads;
            if !inner.chosen {
                profile.size = profile.size.saturating_add(inner.size);
                profile.costly |= inner.costly;
            }
        });
        profile
    }
}

impl<'a> Survey<'a> {
    fn collect(
        &mut self,
        recording: &'a Recording,
        nodes: &'a [Node],
        loops: &mut Vec<usize>,
        conditions: &mut Vec<usize>,
    ) {
        for node in nodes {
            match node {
                Node::For { number, body } => {
                    loops.push(*number);
                    self.collect(recording, body, loops, conditions);
                    loops.pop();
                }
                Node::If { condition, then, otherwise } => {
                    conditions.push(*condition);
                    self.collect(recording, then, loops, conditions);
                    self.collect(recording, otherwise, loops, conditions);
                    conditions.pop();
                }
                Node::Store(write) => {
                    let values = write.indices.iter().chain([&write.value]).collect();
                    let place = (write.target, write.clock, Some(write.location));
                    self.add(place, values, loops, conditions);
                }
                Node::Initialise { target, value, clock } => {
                    let place = (*target, *clock, recording.tensors[*target].location);
                    self.add(place, vec![value], loops, conditions);
                }
                Node::Bind(_) => {}
            }
        }
    }

    fn add(
        &mut self,
        (target, clock, location): (usize, Clock, Option<SourceLocation>),
        values: Vec<&'a Value>,
        loops: &[usize],
        conditions: &[usize],
    ) {
        self.sites.push(Site { target, clock, loops: loops.to_vec(), location });
        let (loops, conditions) = (loops.to_vec(), conditions.to_vec());
        self.users.push(User { clock, loops, values, conditions, location });
    }
}

/// The write, if any, that may come between a read of `tensor` at `clock`, inside the outermost `depth`
/// loops around `user`, and `user` itself.
fn overwritten<'s>(
    survey: &'s Survey<'_>,
    tensor: usize,
    clock: Clock,
    depth: usize,
    user: &User<'_>,
) -> Option<&'s Site> {
    survey.sites.iter().filter(|site| site.target == tensor).find(|site| {
        let shared = site.loops.iter().zip(&user.loops).take_while(|(a, b)| a == b).count();
        let between = clock <= site.clock && site.clock < user.clock;
        let in_earlier_iteration = site.clock >= user.clock && shared > depth;
        between || in_earlier_iteration
    })
}

/// Reports what `value` reads directly, not through a `let`, and finds overwritten.
fn report_stale_reads(
    recording: &Recording,
    survey: &Survey<'_>,
    user: &User<'_>,
    value: &Value,
    errors: &mut Vec<DefinitionError>,
) {
    for (tensor, clock) in reads(value) {
        if let Some(site) = overwritten(survey, tensor, clock, user.loops.len(), user) {
            let name = &recording.tensors[tensor].name;
            let message = format!("a value read from `{name}` is used after `{name}` has been overwritten");
            let help = format!("use the value before `{name}` is written, or write to another tensor");
            errors.push(
                DefinitionError::new(message, user.location, help).note("overwritten here", site.location),
            );
        }
    }
}

/// The tensors that a value reads, not through bindings, with the times.
fn reads(value: &Value) -> Vec<(usize, Clock)> {
    let mut found = BTreeSet::new();
    for_each_value(value, &mut |node| {
        if let ValueKind::Load(tensor, _, clock) = node.kind() {
            found.insert((*tensor, *clock));
        }
    });
    found.into_iter().collect()
}

/// Every binding that a statement uses, also through other bindings, in order.
fn bindings_used(recording: &Recording, user: &User<'_>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = user.conditions.clone();
    let collect = |value: &Value, open: &mut Vec<usize>| {
        for_each_value(value, &mut |node| {
            if let ValueKind::Bound(number) = node.kind() {
                open.push(*number);
            }
        });
    };
    user.values.iter().for_each(|value| collect(value, &mut open));
    while let Some(number) = open.pop() {
        if found.insert(number) {
            collect(&recording.bindings[number].value, &mut open);
        }
    }
    found
}

/// Calls `visit` with a value and everything it is computed from, each node once.
fn for_each_value<'v>(value: &'v Value, visit: &mut dyn FnMut(&'v Value)) {
    let mut open = vec![value];
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some(value) = open.pop() {
        if seen.insert(value.address()) {
            visit(value);
            open.extend(value.operands());
        }
    }
}
