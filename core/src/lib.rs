#![forbid(unsafe_code)]
//! The heart of Tilewright: the intermediate representation and everything that is a function of it.
//!
//! This crate does no I/O, starts no thread and knows no backend.
//!
//! | module | holds |
//! |---|---|
//! | [`program`], [`stmt`], [`expr`], [`index`], [`dtype`], [`ids`] | the representation, a value |
//! | [`visit`] | walking and rebuilding it |
//! | [`accuracy`] | how exactly products of `f32` are formed |
//! | [`annotation`] | every annotation that has a meaning |
//! | [`analysis`] | facts about programs: accesses, regions, producers and consumers |
//! | [`schedule`] | primitives that transform a program, and the traces they leave |
//! | [`build`] | from an imperative definition to a program |
//! | [`simplify`] | equal programs that do less |
//! | [`specialize`] | a program for given sizes |
//! | [`strides`] | where the elements of parameters lie |
//! | [`tensor`] | tensors: what kernels take and give |
//! | [`text`] | printing, parsing, canonical numbering, a stable hash |
//! | [`lower`] | from schedulable blocks to the flat program that backends compile |
//! | [`flat`] | facts about flat programs that code generators need |
//! | [`verify`] | what a well-formed program is, checked |
//! | [`render`] | messages shown inside the printed program |
//! | [`interp`] | the reference semantics, executed and checked |
//! | [`math`] | what each operator does to an element, and the transcendental functions |
//! | [`target`] | what it is compiled for |
//! | [`device`] | what compiles and runs it: the boundary to backends |

mod access;
pub mod accuracy;
pub mod analysis;
pub mod annotation;
pub mod build;
pub mod device;
pub mod dtype;
pub mod expr;
pub mod flat;
pub mod ids;
mod in_place;
pub mod index;
pub mod interp;
pub mod intrinsic;
mod layout;
pub mod lower;
pub mod math;
pub mod program;
pub mod render;
pub mod schedule;
pub mod simplify;
pub mod specialize;
pub mod stmt;
pub mod strides;
pub mod swizzle;
pub mod target;
pub mod task_mapping;
pub mod tensor;
pub mod text;
pub mod thread_axis;
pub mod verify;
pub mod visit;
