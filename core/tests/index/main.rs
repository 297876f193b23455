//! Index arithmetic, simplification, bounds and iterator maps against brute force.
//!
//! `TILEWRIGHT_CASES` sets the number of random cases per property.

mod arithmetic;
mod expressions;
mod iter_map;
mod iter_map_patterns;
mod support;
