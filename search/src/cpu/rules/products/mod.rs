//! Rules for several products that are computed together: one file each.

pub mod partial_sums;
pub mod rows_of_products;
