//! Matrices of a warp.

use super::{Row, row};
use crate::exec::build::matrix::{load, product, store, transpose};

pub(super) const ROWS: &[Row] = &[
    row("ldmatrix", "sync aligned m8n8 num=x1|x2|x4 trans? space=shared|shared::cta? b16", "{} []", load),
    row("stmatrix", "sync aligned m8n8 num=x1|x2|x4 trans? space=shared|shared::cta? b16", "[] {}", store),
    row("movmatrix", "sync aligned m8n8 trans b16", ">b32 <b32", transpose),
    row(
        "mma",
        "sync aligned shape=m16n8k8|m16n8k16 row col d=f16|f32 a=f16 b=f16 c=f16|f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "mma",
        "sync aligned shape=m16n8k8|m16n8k16 row col d=f32 a=bf16 b=bf16 c=f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "mma",
        "sync aligned shape=m16n8k4|m16n8k8 row col d=f32 a=tf32 b=tf32 c=f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "mma",
        "sync aligned shape=m16n8k32 row col d=f32 a=e4m3|e5m2 b=e4m3|e5m2 c=f32",
        "{} {} {} {}",
        product,
    ),
    row(
        "mma",
        "sync aligned shape=m8n8k16|m16n8k16|m16n8k32 row col satfinite? d=s32 a=u8|s8 b=u8|s8 c=s32",
        "{} {} {} {}",
        product,
    ),
    row(
        "mma",
        "sync aligned shape=m8n8k32|m16n8k32|m16n8k64 row col satfinite? d=s32 a=u4|s4 b=u4|s4 c=s32",
        "{} {} {} {}",
        product,
    ),
    row("mma", "sync aligned shape=m8n8k4 row col d=f64 a=f64 b=f64 c=f64", "{} {} {} {}", product),
    row(
        "mma",
        "sync aligned shape=m16n8k4|m16n8k8|m16n8k16 row col rnd=rn? d=f64 a=f64 b=f64 c=f64",
        "{} {} {} {}",
        product,
    ),
];
