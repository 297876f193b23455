//! Programs that no text can state: with broken ids, kinds and types. Programs that a text can state are in the golden files.

use std::sync::Arc;

use super::{Level, verify};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::{BufferId, LoopId, VarId};
use crate::index::{Base, Digit, Index};
use crate::program::{Program, VariableKind};
use crate::render::Entity;
use crate::stmt::{Stmt, Store, StoreKind};

const COPY: &str = "kernel copy(N, in x: f32[N], out y: f32[N]) {
    for i in 0..N { block a(v: spatial N = i) { y[v] = x[v] } }
    for j in 0..N { block b(w: spatial N = j) { y[w] = x[w] } }
}";

fn copy() -> Program {
    COPY.parse().expect("the program is well-formed")
}

/// The errors, which can also be shown.
fn errors(program: &Program, level: Level) -> Vec<(Entity, String)> {
    let Err(errors) = verify(program, level) else { return Vec::new() };
    let rendered = errors.render(program);
    for error in &errors.errors {
        assert!(rendered.contains(&error.message), "{} is not shown in\n{rendered}", error.message);
        assert!(errors.to_string().contains(&error.message));
    }
    errors.errors.into_iter().map(|error| (error.entity, error.message)).collect()
}

fn assert_one(program: &Program, level: Level, entity: Entity, part: &str) {
    let errors = errors(program, level);
    let found = errors.iter().any(|(at, message)| *at == entity && message.contains(part));
    assert!(found, "no error at {entity:?} says {part:?}: {errors:?}");
}

fn with_value(value: Expr) -> Program {
    let mut program: Program =
        "kernel f(n: i64, in x: f32[4], out y: f32[4]) { y[0] = x[0] }".parse().expect("well-formed");
    let indices = [Index::constant(0)].into_iter().collect();
    program.body =
        Stmt::Store(Arc::new(Store { buffer: BufferId(1), indices, value, kind: StoreKind::Plain }));
    program
}

#[test]
fn the_sample_is_well_formed() {
    assert_eq!(errors(&copy(), Level::Blocks), []);
}

#[test]
fn ids_are_unique_and_handed_out() {
    let mut program = copy();
    let Stmt::Seq(stmts) = program.body.clone() else { panic!("two loops") };
    program.body = Stmt::seq([stmts[0].clone(), stmts[0].clone()]);
    assert_one(&program, Level::Blocks, Entity::Loop(LoopId(0)), "two loops have the identity");
    assert_one(&program, Level::Blocks, Entity::Variable(VarId(1)), "`i` is declared twice");

    let Stmt::For(mut node) = stmts[1].clone() else { panic!("a loop") };
    Arc::make_mut(&mut node).id = LoopId(7);
    program.body = Stmt::For(node);
    assert_one(&program, Level::Blocks, Entity::Loop(LoopId(7)), "was not handed out");
}

#[test]
fn ids_of_other_programs_are_reported() {
    let foreign = Expr::load(DType::F32, BufferId(9), [Index::var(VarId(77))]);
    let program = with_value(foreign);
    assert_one(&program, Level::Loops, Entity::Statement(0), "no buffer buffer9");
    assert_one(&program, Level::Loops, Entity::Statement(0), "mentions `v77` outside of its scope");
}

#[test]
fn kinds_of_variables_match_their_declaration() {
    let mut program = copy();
    let Stmt::Seq(stmts) = program.body.clone() else { panic!("two loops") };
    let Stmt::For(mut node) = stmts[0].clone() else { panic!("a loop") };
    Arc::make_mut(&mut node).var = program.add_variable("iter", VariableKind::Iter);
    program.body = Stmt::For(node);
    assert_one(&program, Level::Blocks, Entity::Variable(VarId(5)), "is of kind Iter, but declared as Loop");
}

#[test]
fn expressions_have_the_type_that_they_say() {
    let x = Expr::load(DType::F32, BufferId(0), [Index::constant(0)]);
    let at = Entity::Statement(0);
    let cases = [
        (ExprKind::Constant(Constant::Int(1)), "an integer constant cannot be of type f32"),
        (ExprKind::Constant(Constant::float(0.1)), "is not rounded to f32"),
        (ExprKind::Index(Index::constant(1)), "an index is i64, not f32"),
        (ExprKind::Scalar(VarId(0)), "scalar `n` is i64, but is used as f32"),
        (ExprKind::Binary(BinaryOp::Lt, x.clone(), x.clone()), "gives bool, not f32"),
        (ExprKind::Bounded(x.clone(), Index::constant(4)), "`bounded` needs an integer"),
    ];
    for (kind, message) in cases {
        assert_one(&with_value(Expr::new(DType::F32, kind)), Level::Loops, at, message);
    }
    for (dtype, value) in [(DType::U8, 256), (DType::I8, -129), (DType::Bool, 2), (DType::I32, 1 << 40)] {
        let constant = Expr::new(dtype, ExprKind::Constant(Constant::Int(value)));
        assert_one(&with_value(constant), Level::Loops, at, "is no value of");
    }
    let nan = Expr::new(DType::F32, ExprKind::Constant(Constant::Float(0x7ff8_0000_0000_0001)));
    assert_eq!(errors(&with_value(nan), Level::Loops), []);
}

#[test]
fn values_in_indices_are_i64_and_digits_sound() {
    let x = Expr::load(DType::F32, BufferId(0), [Index::constant(0)]);
    let opaque = Index::digit(Digit::whole(Base::Value(x)));
    let program = with_value(Expr::load(DType::F32, BufferId(0), [opaque]));
    assert_one(&program, Level::Loops, Entity::Statement(0), "a value inside an index must be i64, not f32");

    let digit = Index::digit(Digit { base: Base::Lane(8), divisor: 1, modulus: 1 });
    let program = with_value(Expr::load(DType::F32, BufferId(0), [digit]));
    assert_one(&program, Level::Flat, Entity::Statement(0), "has a digit `/ 1 % 1`");
}

#[test]
fn barriers_stand_where_all_threads_of_a_block_come_to() {
    let program = |body: &str| -> Program {
        format!("kernel f(N, in x: f32[8], out y: f32[8]) {{ {body} }}").parse().expect("well-formed text")
    };
    let legal = program(
        "bound block_x for b in 0..2 { bound thread_y for u in 0..2 { bound thread_x for t in 0..2 {
            for k in 0..N { if k + b < 3 { barrier() } } y[b*4 + u*2 + t] = x[0] } } }",
    );
    for level in [Level::Loops, Level::Flat] {
        assert_eq!(errors(&legal, level), []);
    }
    let whole = Entity::Program;
    for (body, part) in [
        ("barrier() y[0] = x[0]", "outside of the loops over the threads"),
        ("bound block_x for b in 0..2 { barrier() y[b] = x[0] }", "outside of the loops over the threads"),
        ("bound thread_x for t in 0..8 { if t < 4 { barrier() } y[t] = x[0] }", "not all threads"),
        ("bound thread_x for t in 0..8 { for k in 0..t { barrier() } y[t] = x[0] }", "not all threads"),
        ("bound thread_x for t in 0..8 { if x[0] > 0.0 { barrier() } y[t] = x[0] }", "not all threads"),
        (
            "bound thread_y for u in 0..2 { y[u] = x[0] bound thread_x for t in 0..2 { barrier() } }",
            "between the loops over threads",
        ),
    ] {
        assert_one(&program(body), Level::Loops, whole, part);
    }
}

#[test]
fn lanes_of_whole_warps_exchange_single_values() {
    let program = |body: &str| -> Program {
        let text = format!(
            "kernel f(in x: f32[64], out y: f32[64]) {{
  buffer a: f32[2] local
  buffer s: f32[64] shared
  {body}
}}"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
    };
    let by_threads = |loops: &str, mask: u32, store: &str| {
        program(&format!(
            "alloc s {{ {loops} alloc a {{ shuffle {mask} {{ {store} }} y[0] = a[0] }} {} }}",
            "}".repeat(loops.matches('{').count())
        ))
    };
    for loops in
        ["bound thread_x for t in 0..32 {", "bound thread_y for u in 0..4 { bound thread_x for t in 0..8 {"]
    {
        assert_eq!(errors(&by_threads(loops, 16, "a[0] = x[t]"), Level::Loops), [], "{loops}");
    }
    let lanes = "bound thread_x for t in 0..32 {";
    for (loops, mask, store, part) in [
        (lanes, 32, "a[0] = x[t]", "not from 1 to 31"),
        (lanes, 0, "a[0] = x[t]", "not from 1 to 31"),
        (lanes, 1, "s[t] = x[t]", "not one store"),
        (lanes, 1, "a[0] = x[t] a[1] = x[t]", "not one store"),
        ("bound thread_x for t in 0..33 {", 1, "a[0] = x[t]", "no whole warps"),
        ("bound thread_x for u in 0..8 { bound thread_y for t in 0..4 {", 1, "a[0] = x[t]", "no whole warps"),
        ("bound thread_x for t in 0..32 { if t < 4 {", 1, "a[0] = x[t]", "not all threads"),
        ("for t in 0..32 {", 1, "a[0] = x[t]", "outside of the loops over the threads"),
    ] {
        assert_one(&by_threads(loops, mask, store), Level::Loops, Entity::Program, part);
    }
}
