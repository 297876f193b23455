//! Separates the computation that can run before calls from the rest.
//!
//! ```text
//! kernel dense(in x: …, constant w: …, out y: …) { buffer p: …  p = pack(w)  y = x·p }
//! kernel dense(constant w: …, out p: …) { p = pack(w) }     kernel dense(in x: …, constant w: …, out y: …, in p: …) { y = x·p }
//! ```

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads, stores};
use crate::analysis::constant::{constant_stages, root_statements};
use crate::ids::BufferId;
use crate::program::{Access, Param, Program, Scope};
use crate::stmt::Stmt;

/// A program in two parts, whose execution one after the other equals the program's.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantSplit {
    /// Computes from constant parameters the values that the rest needs. Its parameters are the constants and then the
    /// results.
    pub prologue: Program,
    /// Which of the original's tensors the prologue takes, by their position among its tensors.
    pub constants: Vec<usize>,
    /// The rest. Its parameters are the original's, and then the prologue's results.
    pub main: Program,
}

/// Splits a program of the `Blocks` level into the part that depends on its constant parameters alone and the rest; `None` when
/// there is no such part.
pub fn split_constants(program: &Program) -> Option<ConstantSplit> {
    let ahead = constant_stages(program);
    if ahead.is_empty() {
        return None;
    }
    let part = |is_ahead: bool| {
        let statements = root_statements(program).iter().enumerate();
        Stmt::seq(
            statements
                .filter(|(position, _)| ahead.contains(position) == is_ahead)
                .map(|(_, stmt)| stmt.clone()),
        )
    };
    let (first, rest) = (part(true), part(false));
    let needed = touched(&rest);
    let passed: Vec<BufferId> =
        program.buffers().map(|(id, _)| id).filter(|id| needed.contains(id) && writes(&first, *id)).collect();
    // The results of a prologue live in ordinary memory.
    let is_fixed_elsewhere =
        |id: &BufferId| program.has_fixed_scope(*id) && program.buffer(*id).scope != Scope::Global;
    if passed.iter().any(is_fixed_elsewhere) {
        return None;
    }
    let read = touched(&first);
    let (constants, taken): (Vec<usize>, Vec<Param>) = program
        .buffer_params()
        .enumerate()
        .filter(|(_, (id, _))| read.contains(id))
        .map(|(position, (id, access))| (position, Param::Buffer(id, access)))
        .unzip();

    let mut whole = program.clone();
    for id in &passed {
        whole.buffer_mut(*id).scope = Scope::Global;
        whole.forget_alignments(*id);
        whole.forget_swizzle(*id);
    }
    let (mut prologue, mut main) = (whole.clone(), whole);
    (prologue.body, prologue.params) = (first, Arc::new(taken));
    main.body = rest;
    for id in passed {
        prologue.add_param(Param::Buffer(id, Access::Output));
        main.add_param(Param::Buffer(id, Access::Input));
    }
    Some(ConstantSplit { prologue, constants, main })
}

fn writes(stmt: &Stmt, buffer: BufferId) -> bool {
    stores(stmt).iter().any(|store| store.buffer == buffer)
}

fn touched(stmt: &Stmt) -> FxHashSet<BufferId> {
    let stored = stores(stmt).into_iter().map(|store| store.buffer);
    loads(stmt).into_iter().map(|access| access.buffer).chain(stored).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Constant;
    use crate::interp::run;
    use crate::tensor::AnyTensor;
    use crate::verify::{Level, verify};

    /// A program of stages such as `p = w[v] + v[v]`, each in a loop and a block of its own.
    fn program(stages: &[&str]) -> Program {
        let stage = |(number, stage): (usize, &&str)| {
            let (target, value) = stage.split_once(" = ").expect("an assignment");
            format!(
                "for i{number} in 0..4 {{ block b{number}(n{number}: spatial 4 = i{number}) {{ {target}[n{number}] = {} }} }}\n",
                value.replace("[]", &format!("[n{number}]"))
            )
        };
        let used = |name: &&str| stages.iter().any(|stage| stage.starts_with(&format!("{name} = ")));
        let buffers: String = ["p", "q", "r"]
            .iter()
            .filter(|name| used(name))
            .map(|name| format!("buffer {name}: f32[4] local\n"))
            .collect();
        let body: String = stages.iter().enumerate().map(stage).collect();
        let text = format!(
            "kernel k(s: f32, in x: f32[4], constant w: f32[4], constant u: f32[4], out y: f32[4]) {{\n{buffers}{body}}}"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error} in\n{text}"));
        verify(&program, Level::Blocks).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        program
    }

    fn tensor(values: [f64; 4]) -> AnyTensor {
        AnyTensor::from_f64s(DType::F32, &values, &[4]).unwrap()
    }

    fn scalar() -> Constant {
        Constant::float(3.0)
    }

    /// Runs both parts one after the other and compares with the whole; gives the number of stages that run ahead.
    fn ahead(stages: &[&str]) -> usize {
        let whole = program(stages);
        let inputs =
            [tensor([1.0, 2.0, 3.0, 4.0]), tensor([5.0, 7.0, 9.0, 2.0]), tensor([6.0, 8.0, 1.0, 3.0])];
        let mut expected = [inputs.to_vec(), vec![tensor([0.0; 4])]].concat();
        run(&whole, &[], &[scalar()], &mut expected).unwrap();
        let Some(ConstantSplit { prologue, constants, main }) = split_constants(&whole) else { return 0 };
        for part in [&prologue, &main] {
            verify(part, Level::Blocks).unwrap_or_else(|errors| panic!("{errors}\n{part}"));
            assert_eq!(part.to_string().parse::<Program>().unwrap(), part.canonical());
        }
        let mut first: Vec<AnyTensor> = constants.iter().map(|position| inputs[*position].clone()).collect();
        first.extend((constants.len()..prologue.buffer_params().count()).map(|_| tensor([0.0; 4])));
        run(&prologue, &[], &[], &mut first).unwrap();
        let mut found = [inputs.to_vec(), vec![tensor([0.0; 4])], first.split_off(constants.len())].concat();
        run(&main, &[], &[scalar()], &mut found).unwrap();
        assert_eq!(found[3], expected[3], "{prologue}\n{main}");
        root_statements(&prologue).len()
    }

    #[test]
    fn what_depends_on_constants_alone_runs_ahead() {
        assert_eq!(ahead(&["p = w[] * 2.0", "y = p[] + x[]"]), 1);
        assert_eq!(ahead(&["p = w[] * 2.0", "q = x[] + 1.0", "r = p[] + u[]", "y = r[] * q[]"]), 2);
        assert_eq!(ahead(&["p = w[] * 2.0", "r = u[] + 1.0", "y = p[] * r[] + x[]"]), 2, "two of them");
        assert_eq!(
            ahead(&["p = 1.5", "q = p[] * w[]", "y = q[] + p[]"]),
            2,
            "one that needs no constant, but is needed"
        );
    }

    #[test]
    fn what_depends_on_anything_else_stays() {
        assert_eq!(ahead(&["p = x[] * 2.0", "y = p[] + w[]"]), 0, "an input");
        assert_eq!(ahead(&["p = w[] * s", "y = p[] + x[]"]), 0, "a scalar");
        assert_eq!(ahead(&["y = w[] * 2.0"]), 0, "a result");
        assert_eq!(ahead(&["p = 1.5", "y = p[] + x[]"]), 0, "nothing constant is read");
        assert_eq!(ahead(&["p = w[] + 1.0", "p = p[] * x[]", "y = p[]"]), 0, "it is changed later");
        assert_eq!(ahead(&["p = x[]", "p = w[]", "y = p[]"]), 0, "it is written before");
        let reused = ["p = w[] + 1.0", "q = p[] * x[]", "p = u[] + 1.0", "y = p[] + q[]"];
        assert_eq!(ahead(&reused), 0, "it is read before it is written again");
    }

    #[test]
    fn symbolic_sizes_are_left_alone() {
        let text = "kernel k(N, constant w: f32[N], out y: f32[N]) { buffer p: f32[N] global
            for i in 0..N { block p(v: spatial N = i) { p[v] = w[v] } }
            for i1 in 0..N { block y(v1: spatial N = i1) { y[v1] = p[v1] } } }";
        let symbolic: Program = text.parse().unwrap();
        assert_eq!(split_constants(&symbolic), None);
        let dim = symbolic.dims().next().unwrap().0;
        assert!(split_constants(&symbolic.bind_dims(&[(dim, 4)])).is_some());
    }

    #[test]
    fn the_hash_knows_what_is_constant() {
        let constant = program(&["y = w[] + x[]"]);
        let plain: Program = constant.to_string().replace("constant", "in").parse().unwrap();
        assert_ne!(constant.stable_hash(), plain.stable_hash());
    }
}
