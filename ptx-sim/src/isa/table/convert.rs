//! Conversions and moves.

use super::{Row, row};
use crate::exec::build::convert::{copy, in_window, pack, pack_integers, repack, scalar, to_or_from_generic};

pub(super) const ROWS: &[Row] = &[
    row(
        "cvt",
        "rnd=rni|rzi|rmi|rpi|rn|rz|rm|rp? ftz? sat? \
         d=u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64 \
         s=u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64",
        ">+d <+s",
        scalar,
    ),
    row("cvt", "rnd=rn|rz relu satfinite? d=f16|bf16 s=f32", ">+d <s", scalar),
    row("cvt", "rnd=rn|rz satfinite d=f16|bf16 s=f32", ">+d <s", scalar),
    row("cvt", "rnd=rna satfinite? d=tf32 s=f32", ">b32 <s", scalar),
    row("cvt", "rnd=rn|rz satfinite? relu? d=tf32 s=f32", ">b32 <s", scalar),
    row("cvt", "rnd=rn|rz relu? satfinite? d=f16x2|bf16x2 s=f32", ">d <s <s", pack),
    row("cvt", "rnd=rn satfinite relu? d=e4m3x2|e5m2x2 s=f32", ">d <s <s", pack),
    row("cvt", "rnd=rn satfinite relu? d=e4m3x2|e5m2x2 s=f16x2", ">d <s", repack),
    row("cvt", "rnd=rn relu? d=f16x2 s=e4m3x2|e5m2x2", ">d <s", repack),
    row("cvt", "pack sat d=u16|s16 s32", ">u32 <s32 <s32", pack_integers),
    row("cvt", "pack sat d=u8|s8 s32 b32", ">u32 <s32 <s32 <b32", pack_integers),
    row("cvta", "space=const|global|local|shared|shared::cta|param u64", ">u64 <u64", to_or_from_generic),
    row("cvta", "to space=const|global|local|shared|shared::cta|param u64", ">u64 <u64", to_or_from_generic),
    row(
        "isspacep",
        "space=const|global|local|shared|shared::cta|shared::cluster|param",
        ">pred <u64",
        in_window,
    ),
    row("mov", "t=pred|ANY", "~ ~", copy),
];
