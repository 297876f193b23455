//! Merges assignments that belong together, so that each block does one whole thing.
//!
//! | before | after |
//! |---|---|
//! | `t = constant; … t …` | the constant in place of `t` |
//! | `t = zeros; t[..n] = a; t[n..] = b` | without the zeros, when the parts cover all |
//! | `t = a; c = reduction from t` | the reduction with `a` as its initial value |
//! | `t = reduction; c[i, j] = t[i, j]` | the reduction straight into `c` |
//!
//! Assignments whose results nothing reads are removed.

use super::loads::replace_loads;
use super::version::{Assignment, Versioned, plain_indices};
use crate::build::record::recording::Role;
use crate::build::statement::{Effect, Kernel};
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::visit::{for_each_var, substitute_expr};

/// Merges and removes assignments. `outputs` are the tensors that the kernel returns.
pub(in crate::build) fn forward(kernel: &Kernel, outputs: &[usize], versioned: &mut Versioned) {
    forward_constants(kernel, versioned);
    drop_overwritten(kernel, versioned);
    remove_unread(kernel, outputs, versioned);
    let finals = final_versions(kernel, outputs, versioned);
    while merge_one(versioned, &finals) {}
    for assignment in versioned.assignments.iter_mut().flatten() {
        let storage = |version: usize| versioned.versions[version].storage;
        if let Some(init) = &assignment.init
            && let ExprKind::Load(version, indices) = init.kind()
            && storage(version.0 as usize) == storage(assignment.version)
            && *indices == assignment.indices
        {
            assignment.init = None;
        }
    }
}

fn final_versions(kernel: &Kernel, outputs: &[usize], versioned: &Versioned) -> Vec<usize> {
    let last = versioned.last.iter();
    let returned =
        last.filter(|(target, _)| outputs.contains(target) || kernel.targets[**target].role == Role::InOut);
    returned.map(|(_, version)| *version).collect()
}

/// The assignments that write a version, in order.
fn writers(versioned: &Versioned, version: usize) -> Vec<usize> {
    let all = versioned.assignments.iter().enumerate();
    all.filter(|(_, assignment)| assignment.as_ref().is_some_and(|a| a.version == version))
        .map(|(at, _)| at)
        .collect()
}

/// The assignment that alone defines all of a version.
fn only_writer(versioned: &Versioned, version: usize) -> Option<usize> {
    match writers(versioned, version)[..] {
        [at] if !versioned.versions[version].external => Some(at),
        _ => None,
    }
}

/// How often each version is read.
fn count_reads(versioned: &Versioned) -> Vec<usize> {
    let mut reads = vec![0; versioned.versions.len()];
    for assignment in versioned.assignments.iter().flatten() {
        assignment.for_each_read(&mut |version, _| reads[version] += 1);
    }
    reads
}

/// Puts a constant, or a run-time scalar, in place of the reads of a version full of it.
fn forward_constants(kernel: &Kernel, versioned: &mut Versioned) {
    for version in 0..versioned.versions.len() {
        let Some(at) = only_writer(versioned, version) else { continue };
        let writer = versioned.assignments[at].as_ref().expect("a writer is there");
        let Effect::Set(value) = &writer.effect else { continue };
        let mut constant = writer.condition.is_none() && writer.plain_indices().is_some();
        for_each_var(value, &mut |var| constant &= kernel.loop_of(var).is_none());
        writer.for_each_read(&mut |_, _| constant = false);
        if !constant {
            continue;
        }
        let value = value.clone();
        let replace = |dtype: DType, read: BufferId, indices: Indices| {
            if read.0 as usize == version { value.clone() } else { Expr::load(dtype, read, indices) }
        };
        for assignment in versioned.assignments.iter_mut().flatten() {
            let mut reads = false;
            assignment.for_each_read(&mut |read, _| reads |= read == version);
            if reads {
                assignment.map(&|expr| replace_loads(expr, &replace));
            }
        }
    }
}

/// Removes an initial value that plain assignments to parts overwrite entirely before anything reads it.
fn drop_overwritten(kernel: &Kernel, versioned: &mut Versioned) {
    for version in 0..versioned.versions.len() {
        let all = writers(versioned, version);
        let [first, parts @ ..] = &all[..] else { continue };
        let Some(last) = parts.last() else { continue };
        // The statements of a recurrence with a part run again before the part's next iteration.
        let recurs = |at: &usize| recurs_with(versioned, *at, parts);
        if recurs(first) {
            continue;
        }
        let end = (*last..versioned.assignments.len()).rfind(recurs).unwrap_or(*last);
        let between = versioned.assignments[*first..=end].iter().flatten();
        let mut read = false;
        between.for_each(|assignment| assignment.for_each_read(&mut |other, _| read |= other == version));
        let shape = &kernel.targets[versioned.versions[version].target].shape;
        let parts: Vec<&Assignment> =
            parts.iter().filter_map(|&at| versioned.assignments[at].as_ref()).collect();
        if !read && tiles(kernel, &parts, shape) {
            versioned.assignments[*first] = None;
        }
    }
}

/// Whether an assignment stands in a recurrence with one of others.
fn recurs_with(versioned: &Versioned, at: usize, others: &[usize]) -> bool {
    let recurrences = |at: usize| {
        let assignment = versioned.assignments[at].iter();
        assignment.flat_map(|assignment| assignment.recurrences.iter().flatten())
    };
    recurrences(at)
        .any(|own| others.iter().any(|&other| recurrences(other).any(|recurrence| recurrence == own)))
}

/// Whether plain assignments to parts that lie one behind the other along one dimension cover a shape.
fn tiles(kernel: &Kernel, parts: &[&Assignment], shape: &[Index]) -> bool {
    let is_plain = |part: &&Assignment| {
        part.condition.is_none() && !part.overwrites() && matches!(part.effect, Effect::Set(_))
    };
    let plain = parts.iter().all(is_plain);
    let regions: Option<Vec<Vec<(Index, Index)>>> = parts.iter().map(|part| region(kernel, part)).collect();
    let Some(regions) = regions else { return false };
    let whole = |dimension: usize| {
        regions.iter().all(|region| region[dimension].0.is(0) && region[dimension].1 == shape[dimension])
    };
    plain
        && (0..shape.len()).any(|along| {
            (0..shape.len()).all(|dimension| dimension == along || whole(dimension))
                && chains(regions.iter().map(|region| &region[along]).collect(), &shape[along])
        })
}

/// Start and end in each dimension of what an assignment writes.
fn region(kernel: &Kernel, part: &Assignment) -> Option<Vec<(Index, Index)>> {
    let vars: Vec<VarId> = part.loops.iter().copied().filter(|&var| !part.reduces(var)).collect();
    let mut used: Vec<VarId> = Vec::new();
    let mut bounds = Vec::new();
    for index in &part.indices {
        let mut own = vars.iter().copied().filter(|&var| index.mentions(var));
        let (var, more) = (own.next()?, own.next());
        if more.is_some() || index.linear_coefficient(var) != Some(1) || used.contains(&var) {
            return None;
        }
        used.push(var);
        let start = index.add_scaled(&Index::var(var), -1);
        let end = &start + kernel.extent(var);
        bounds.push((start, end));
    }
    Some(bounds)
}

/// Whether intervals can be put one behind the other from 0 to `end`.
fn chains(mut open: Vec<&(Index, Index)>, end: &Index) -> bool {
    let mut reached = Index::constant(0);
    while let Some(at) = open.iter().position(|interval| interval.0 == reached) {
        reached = open.remove(at).1.clone();
    }
    reached == *end
}

/// Removes assignments whose results nothing reads.
fn remove_unread(kernel: &Kernel, outputs: &[usize], versioned: &mut Versioned) {
    let mut live = vec![false; versioned.versions.len()];
    let mut open = final_versions(kernel, outputs, versioned);
    while let Some(version) = open.pop() {
        // The parameter's first version lives in the buffer of its last one.
        for same in [version, versioned.versions[version].storage] {
            if !std::mem::replace(&mut live[same], true) {
                for at in writers(versioned, same) {
                    let writer = versioned.assignments[at].as_ref().expect("a writer is there");
                    writer.for_each_read(&mut |read, _| open.push(read));
                }
            }
        }
    }
    for assignment in &mut versioned.assignments {
        if assignment.as_ref().is_some_and(|assignment| !live[assignment.version]) {
            *assignment = None;
        }
    }
}

/// Merges one pair of assignments; `false` when there is none.
fn merge_one(versioned: &mut Versioned, finals: &[usize]) -> bool {
    let reads = count_reads(versioned);
    for (version, &reads) in reads.iter().enumerate() {
        if finals.contains(&version) {
            continue;
        }
        let Some(producer) = only_writer(versioned, version) else { continue };
        if merge_into_init(versioned, version, producer, reads) || merge_copy(versioned, version, producer) {
            return true;
        }
    }
    false
}

/// A version that only serves as the initial value of a reduction becomes that initial value.
fn merge_into_init(versioned: &mut Versioned, version: usize, producer: usize, reads: usize) -> bool {
    let writer = versioned.assignments[producer].as_ref().expect("a writer is there");
    let (Effect::Set(value), Some(from), None) = (&writer.effect, writer.plain_indices(), &writer.condition)
    else {
        return false;
    };
    let consumer = versioned.assignments.iter().position(|assignment| {
        assignment.as_ref().and_then(|a| a.init.as_ref()).is_some_and(|init| match init.kind() {
            ExprKind::Load(read, _) => read.0 as usize == version,
            _ => false,
        })
    });
    let Some(consumer) = consumer else { return false };
    let reader = versioned.assignments[consumer].as_ref().expect("the reader is there");
    let Some(ExprKind::Load(_, to)) = reader.init.as_ref().map(Expr::kind) else { return false };
    if reads != 1 || !may_move(versioned, writer, producer, reader, consumer) {
        return false;
    }
    let init = rename(value, &from, to);
    versioned.assignments[consumer].as_mut().expect("the reader is there").init = Some(init);
    versioned.assignments[producer] = None;
    true
}

/// `expr` with the variables `from` replaced by the indices `to`.
fn rename(expr: &Expr, from: &[VarId], to: &Indices) -> Expr {
    substitute_expr(expr, &|var| from.iter().position(|other| *other == var).map(|at| to[at].clone()))
}

/// Whether what `writer` reads is still there when `reader` runs, which may write the elements at its own indices.
fn may_move(
    versioned: &Versioned,
    writer: &Assignment,
    producer: usize,
    reader: &Assignment,
    consumer: usize,
) -> bool {
    let storage = |version: usize| versioned.versions[version].storage;
    let mut may = writer.stands_with(reader);
    writer.for_each_read(&mut |read, indices| {
        let between = versioned.assignments[producer + 1..consumer].iter().flatten();
        may &= between.into_iter().all(|other| storage(other.version) != storage(read));
        may &= storage(reader.version) != storage(read) || *indices == writer.indices;
    });
    may
}

/// A version that is copied, element by element, into a part of another one is computed there in the first place.
fn merge_copy(versioned: &mut Versioned, version: usize, producer: usize) -> bool {
    let Some((copy, shared)) = find_copy(versioned, version, producer) else { return false };
    let copier = versioned.assignments[copy].take().expect("the copy is there");
    let Effect::Set(value) = &copier.effect else { return false };
    let ExprKind::Load(_, read) = value.kind() else { return false };
    let from = plain_indices(read).expect("a copy reads plain indices");
    let place = |indices: &Indices| -> Indices {
        let replace = |var| from.iter().position(|other| *other == var).map(|at| indices[at].clone());
        copier.indices.iter().map(|index| index.substitute(&replace)).collect()
    };
    let writer = versioned.assignments[producer].as_mut().expect("a writer is there");
    writer.indices = place(&writer.indices);
    writer.version = copier.version;
    if shared {
        let redirect = |dtype: DType, read: BufferId, indices: Indices| {
            if read.0 as usize == version {
                Expr::load(dtype, BufferId(copier.version as u32), place(&indices))
            } else {
                Expr::load(dtype, read, indices)
            }
        };
        for assignment in versioned.assignments.iter_mut().flatten() {
            assignment.map(&|expr| replace_loads(expr, &redirect));
        }
    }
    true
}

/// An assignment that does nothing but copy the version, such that the copy may be made at once, and
/// whether others read the version as well.
fn find_copy(versioned: &Versioned, version: usize, producer: usize) -> Option<(usize, bool)> {
    let storage = |version: usize| versioned.versions[version].storage;
    let writer = versioned.assignments[producer].as_ref()?;
    writer.plain_indices()?;
    let reads = count_reads(versioned)[version];
    let after = versioned.assignments.iter().enumerate().skip(producer + 1);
    let copy =
        after.filter_map(|(at, assignment)| Some((at, assignment.as_ref()?))).find(|(_, assignment)| {
            let Effect::Set(value) = &assignment.effect else { return false };
            let ExprKind::Load(read, indices) = value.kind() else { return false };
            let Some(vars) = plain_indices(indices) else { return false };
            read.0 as usize == version
                && assignment.condition.is_none()
                && vars.len() == assignment.loops.len()
                && vars.iter().all(|var| assignment.loops.contains(var))
        });
    let (copy, copier) = copy?;
    if !copier.stands_with(writer) {
        return None;
    }
    let destination = storage(copier.version);
    // Other readers need the destination to hold exactly this from then on.
    let whole = copier.plain_indices().is_some() && only_writer(versioned, copier.version).is_some();
    let own_buffer = versioned.versions.iter().filter(|v| v.storage == destination).count() == 1;
    if reads != 1 && !(whole && own_buffer) {
        return None;
    }
    let mut clear = true;
    for other in versioned.assignments[producer..copy].iter().flatten() {
        clear &= storage(other.version) != destination;
        other.for_each_read(&mut |read, _| clear &= storage(read) != destination);
    }
    clear.then_some((copy, reads != 1))
}
