//! `mma.sync`: products of matrices whose elements are spread over the registers of a warp.
//!
//! Products of floating-point elements are summed in `f64`, in which they are exact, and rounded once to the type of the
//! result. Hardware sums in an order and a precision of its own, so that results agree up to the usual bounds of a sum.

use crate::exec::lanes::float::canonical;
use crate::exec::lanes::small::{BF16, E4M3, E5M2, F16, Format, Rounding, TF32};
use crate::exec::lanes::{LaneValue, WARP};
use crate::exec::op::{NONE, Product, Slot};
use crate::exec::run::{Exec, Next};
use crate::isa::types::Type;

/// The largest matrix: 16 rows of 64 elements.
const MOST: usize = 16 * 64;

impl Exec<'_> {
    /// `mma.sync`
    pub(crate) fn multiply_matrices(&mut self, product: &Product, mask: u32) -> Next {
        if !self.whole_warp(mask) {
            return Next::Follow;
        }
        let mut known = u32::MAX;
        for slot in product.a.iter().chain(&product.b).chain(&product.c) {
            known &= self.defined(*slot);
        }
        // Each element of the result depends on several lanes.
        let known = if known == u32::MAX { u32::MAX } else { 0 };
        match product.d_type {
            Type::S32 => self.multiply_integers(product, known),
            _ => self.multiply_floats(product, known),
        }
        Next::Follow
    }

    fn multiply_floats(&mut self, p: &Product, known: u32) {
        let (m, n, k) = (p.m, p.n, p.k);
        let mut a = [0.0; MOST];
        let mut b = [0.0; MOST];
        let mut c = [0.0; MOST];
        self.gather_fragment(&p.a, p.a_type, p.fragment_a(), |at, bits| a[at] = number(p.a_type, bits));
        self.gather_fragment(&p.b, p.b_type, p.fragment_b(), |at, bits| b[at] = number(p.b_type, bits));
        self.gather_fragment(&p.c, p.c_type, p.fragment_c(), |at, bits| c[at] = number(p.c_type, bits));
        let mut d = [0_u64; MOST];
        for row in 0..m {
            for column in 0..n {
                let (left, right) = (&a[row * k..(row + 1) * k], &b[column * k..(column + 1) * k]);
                let start = c[row * n + column];
                let sum = match p.d_type {
                    Type::F64 => left.iter().zip(right).fold(start, |sum, (x, y)| x.mul_add(*y, sum)),
                    _ => start + left.iter().zip(right).map(|(x, y)| x * y).sum::<f64>(),
                };
                d[row * n + column] = match p.d_type {
                    Type::F64 => sum.bits(),
                    Type::F32 => u64::from(canonical(sum as f32)),
                    _ => u64::from(F16.encode(sum, Rounding::Nearest, false)),
                };
            }
        }
        self.scatter(p, known, &d);
    }

    fn multiply_integers(&mut self, p: &Product, known: u32) {
        let (m, n, k) = (p.m, p.n, p.k);
        let mut a = [0_i64; MOST];
        let mut b = [0_i64; MOST];
        let mut c = [0_i64; MOST];
        self.gather_fragment(&p.a, p.a_type, p.fragment_a(), |at, bits| a[at] = integer(p.a_type, bits));
        self.gather_fragment(&p.b, p.b_type, p.fragment_b(), |at, bits| b[at] = integer(p.b_type, bits));
        self.gather_fragment(&p.c, p.c_type, p.fragment_c(), |at, bits| c[at] = integer(p.c_type, bits));
        let mut d = [0_u64; MOST];
        for row in 0..m {
            for column in 0..n {
                let (left, right) = (&a[row * k..(row + 1) * k], &b[column * k..(column + 1) * k]);
                let sum = left.iter().zip(right).map(|(x, y)| x * y).sum::<i64>();
                let sum = sum + c[row * n + column];
                let sum = if p.saturates { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
                d[row * n + column] = u64::from(sum as u32);
            }
        }
        self.scatter(p, known, &d);
    }

    /// Gives each element of a fragment with its place in the matrix.
    fn gather_fragment(&self, slots: &[Slot], ty: Type, fragment: Fragment, mut put: impl FnMut(usize, u64)) {
        let bits = element_bits(ty);
        let per_register = if bits == 64 { 1 } else { 32 / bits };
        let low = u64::MAX >> (64 - bits);
        for lane in 0..WARP {
            for (number, slot) in slots.iter().enumerate() {
                let value = self.value(*slot)[lane];
                for part in 0..per_register {
                    let index = number * per_register as usize + part as usize;
                    put(fragment.place(lane, index, bits), value >> (part * bits) & low);
                }
            }
        }
    }

    fn scatter(&mut self, p: &Product, known: u32, d: &[u64; MOST]) {
        let bits = element_bits(p.d_type);
        let per_register = elements_per_register(p.d_type);
        let fragment = if p.spread {
            Fragment::Spread { per_lane: p.d.len() * per_register, total: p.m * p.n }
        } else {
            Fragment::C { m: p.m, n: p.n }
        };
        for (number, slot) in p.d.iter().enumerate() {
            let mut values = [0; WARP];
            for (lane, value) in values.iter_mut().enumerate() {
                for part in 0..per_register {
                    let at = fragment.place(lane, number * per_register + part, bits);
                    *value |= d[at] << (part as u32 * bits);
                }
            }
            if *slot != NONE {
                self.set(*slot, u32::MAX, known, &values);
            }
        }
    }
}

impl Product {
    fn fragment(&self, slots: &[Slot], ty: Type, total: usize, otherwise: Fragment) -> Fragment {
        if self.spread {
            Fragment::Spread { per_lane: slots.len() * elements_per_register(ty), total }
        } else {
            otherwise
        }
    }

    fn fragment_a(&self) -> Fragment {
        let (m, k) = (self.m, self.k);
        self.fragment(&self.a, self.a_type, m * k, Fragment::A { m, k })
    }

    fn fragment_b(&self) -> Fragment {
        let (n, k) = (self.n, self.k);
        self.fragment(&self.b, self.b_type, n * k, Fragment::B { n, k })
    }

    fn fragment_c(&self) -> Fragment {
        let (m, n) = (self.m, self.n);
        self.fragment(&self.c, self.c_type, m * n, Fragment::C { m, n })
    }
}

/// How many elements a register of a fragment holds.
pub(crate) fn elements_per_register(ty: Type) -> usize {
    match element_bits(ty) {
        64 => 1,
        bits => (32 / bits) as usize,
    }
}

/// Bits that an element takes in a register.
pub(crate) fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::Tf32 => 32,
        _ => ty.bits(),
    }
}

/// Which matrix a fragment belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fragment {
    /// By rows.
    A { m: usize, k: usize },
    /// By columns: element `(k, n)` is at `n · k_extent + k`.
    B { n: usize, k: usize },
    /// By rows.
    C { m: usize, n: usize },
    /// As `wmma` has it, whose layout PTX leaves open: here lane after lane, and again from the beginning where registers have room
    /// for several copies.
    Spread { per_lane: usize, total: usize },
}

impl Fragment {
    /// The place of element `index` of a lane. The PTX manual draws these layouts by shape; they follow one rule: lanes in groups
    /// of four share a row (of A and C) or a column (of B). A lane has as many neighbours as a register of 32 bits holds (two in C),
    /// and repeats that first 8 rows further down, then further along the other dimension.
    pub(crate) fn place(self, lane: usize, index: usize, bits: u32) -> usize {
        let (group, inside) = (lane / 4, lane % 4);
        // Elements that lie beside each other in one lane.
        let run = if bits >= 32 { 1 } else { (32 / bits) as usize };
        match self {
            Fragment::A { m, k } => {
                let (block, within) = (index / run, index % run);
                let halves = m / 8;
                let row = group + 8 * (block % halves);
                let column = inside * run + within + 4 * run * (block / halves);
                debug_assert!(row < m && column < k);
                row * k + column
            }
            Fragment::B { n, k } => {
                let (block, within) = (index / run, index % run);
                let row = inside * run + within + 4 * run * block;
                debug_assert!(row < k && group < n);
                group * k + row
            }
            Fragment::Spread { per_lane, total } => (lane * per_lane + index) % total,
            Fragment::C { m, n } => {
                let row = group + 8 * (index / 2);
                let column = inside * 2 + index % 2;
                debug_assert!(row < m && column < n);
                row * n + column
            }
        }
    }
}

/// The value of an element.
fn number(ty: Type, bits: u64) -> f64 {
    let small = |format: Format| format.decode(bits as u32);
    match ty {
        Type::F16 => small(F16),
        Type::Bf16 => small(BF16),
        // The hardware looks at the upper 19 bits only.
        Type::Tf32 => TF32.decode(bits as u32 >> 13),
        Type::E4m3 => small(E4M3),
        Type::E5m2 => small(E5M2),
        Type::F64 => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

fn integer(ty: Type, bits: u64) -> i64 {
    match ty {
        Type::U8 | Type::U4 => bits as i64,
        Type::S8 => i64::from(bits as u8 as i8),
        Type::S4 => i64::from(((bits as u8) << 4) as i8 >> 4),
        _ => i64::from(bits as u32 as i32),
    }
}
