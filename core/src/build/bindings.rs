//! Which `let`s become buffers.
//!
//! A `let` is repeated where it is used unless that would be wrong or wasteful. It is *wrong* when what it
//! reads is overwritten before it is used: `let old = x[[i]]; x[[i]] = y[[i]]; y[[i]] = old;`. It is
//! *wasteful* when it computes a transcendental function and several statements, or a deeper loop, use it.

use std::collections::BTreeSet;

use super::error::{DefinitionError, SourceLocation};
use super::recording::{Node, Recording};
use super::value::{Clock, Value, ValueKind};
use crate::expr::UnaryOp;

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
pub(super) fn choose_buffers(recording: &Recording, errors: &mut Vec<DefinitionError>) -> Vec<bool> {
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
    let mut chosen = vec![false; recording.bindings.len()];
    for number in 0..recording.bindings.len() {
        let costly = is_costly(recording, &chosen, &recording.bindings[number].value);
        chosen[number] = stale[number] || (costly && weight[number] >= 2);
    }
    chosen
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

/// Whether a value computes a transcendental function or a root, also through bindings without buffer.
fn is_costly(recording: &Recording, chosen: &[bool], value: &Value) -> bool {
    let mut costly = false;
    for_each_value(value, &mut |node| match node.kind() {
        ValueKind::Unary(op, _) => costly |= is_transcendental(*op),
        ValueKind::Bound(number) if !chosen[*number] => {
            costly |= is_costly(recording, chosen, &recording.bindings[*number].value);
        }
        _ => {}
    });
    costly
}

const fn is_transcendental(op: UnaryOp) -> bool {
    matches!(
        op,
        UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Exp
            | UnaryOp::Ln
            | UnaryOp::Tanh
            | UnaryOp::Erf
            | UnaryOp::Sigmoid
            | UnaryOp::Sin
            | UnaryOp::Cos
    )
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
