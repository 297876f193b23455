//! The text form of a [`Program`](crate::program::Program): printing, parsing, canonical numbering and a stable hash.
//!
//! ```text
//! kernel matmul(M, N, K, alpha: f32, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
//!   buffer part: f32[M, N] global
//!   parallel for i in 0..M {
//!     for j in 0..N {
//!       @unroll 16
//!       for k in 0..K {
//!         block part(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) at "src/lib.rs:10:5" {
//!           init {
//!             part[vi, vj] = 0.0
//!           }
//!           part[vi, vj] = part[vi, vj] + a[vi, vk] * b[vk, vj]
//!         }
//!       }
//!     }
//!   }
//! }
//! ```
//!
//! # Grammar
//! ```text
//! program    = "kernel" name "(" [ param { "," param } ] ")" [ "accuracy" NUMBER ] [ "multiply_padding" ] "{" { buffer } { stmt } "}"
//! param      = NAME                                   a dimension
//!            | NAME ":" DTYPE                         a run-time scalar
//!            | ("in" | "constant" | "out" | "inout") shaped [ scope ]
//! buffer     = "buffer" shaped scope { "aligned" INTEGER INTEGER INTEGER }      a dimension, factor, offset
//! shaped     = NAME ":" DTYPE "[" indices "]"
//! scope      = "global" | "local" | "streamed"
//! stmt       = { "@" name (INTEGER | STRING) } (for | block)
//!            | NAME "[" indices "]" "=" value
//!            | "if" value "{" { stmt } "}" [ "else" "{" { stmt } "}" ]
//!            | "alloc" NAME "{" { stmt } "}"
//!            | "intrinsic" name "{" { stmt } "}"
//!            | "barrier" "(" ")" | "commit_copies" "(" ")" | "wait_copies" "(" INTEGER ")"
//! for        = [ "parallel" | "vectorized" | "unrolled" | "bound" NAME ] "for" NAME "in" "0" ".." index "{" { stmt } "}"
//! block      = "block" name "(" [ iter { "," iter } ] ")" [ "where" guard { "," guard } ] [ "at" STRING ]
//!              "{" [ "init" "{" { stmt } "}" ] { stmt } "}"
//! iter       = NAME ":" ("spatial" | "reduce") index "=" index
//! guard      = index "<" index
//! name       = NAME | STRING
//!
//! indices    = [ index { "," index } ]
//! index      = index ("+" | "-" | "*" | "/" | "%") index | "-" index | "(" index ")"
//!            | INTEGER | NAME | "lane" "<" INTEGER ">"
//!            | ("min" | "max") "(" index "," index ")"
//!            | NAME "[" indices "]" | bounded | "value" "(" value ")"
//! bounded    = "bounded" "(" value "," "0" ".." index ")"
//!
//! value      = value OPERATOR value | value "as" DTYPE | "-" value | "!" value | "(" value ")"
//!            | LITERAL | "true" | "false" | DTYPE "::" ("INFINITY" | "NEG_INFINITY" | "NAN")
//!            | NAME | NAME "[" indices "]" | "index" "(" index ")" | bounded
//!            | FUNCTION "(" value { "," value } ")" | "bitcast" "<" DTYPE ">" "(" value ")"
//! ```
//! Operators and functions are those of [`UnaryOp`](crate::expr::UnaryOp) and [`BinaryOp`](crate::expr::BinaryOp), besides
//! `mul_add(a, b, c)` and `select(condition, then, otherwise)`; operators bind as in Rust. A literal carries its
//! type as a suffix (`3i32`, `1.5f16`); without one an integer is `i64` and a number with a point or an exponent `f32`.
//! Comments run from `//` to the end of the line. Lists may end in a comma.
//!
//! An *index* divides towards minus infinity and is kept in the canonical form of [`crate::index`]; a *value*
//! truncates and keeps its shape. The words `index(…)` and `value(…)` lead from one to the other.

pub(crate) mod canonical;
#[cfg(test)]
mod generate;
mod hash;
pub(crate) mod names;
mod parse;
pub(crate) mod print;
pub(crate) mod print_value;
#[cfg(test)]
mod properties;

pub use parse::{ParseError, ParseProblem};
