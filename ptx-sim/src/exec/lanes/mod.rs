//! Values of the 32 lanes of a warp, and functions of them without side effects.
//!
//! A register holds one 64-bit word for each lane, with the value in its low bits and zeros above it. A pure instruction is
//! a function that computes all 32 lanes, whether they are active or not: compilers make vector code of such loops.

pub(crate) mod approximate;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod mode;
pub(crate) mod parts;
pub(crate) mod small;

/// How many lanes a warp has.
pub(crate) const WARP: usize = 32;

/// One value for each lane.
pub(crate) type Lanes = [u64; WARP];

/// A function of lanes, by the number of its sources.
#[derive(Clone, Copy)]
pub(crate) enum Pure {
    One(fn(&mut Lanes, &Lanes)),
    Two(fn(&mut Lanes, &Lanes, &Lanes)),
    Three(fn(&mut Lanes, &Lanes, &Lanes, &Lanes)),
    Four(fn(&mut Lanes, &Lanes, &Lanes, &Lanes, &Lanes)),
}

impl Pure {
    /// Number of its sources.
    pub(crate) fn arity(self) -> usize {
        match self {
            Pure::One(_) => 1,
            Pure::Two(_) => 2,
            Pure::Three(_) => 3,
            Pure::Four(_) => 4,
        }
    }

    /// Its value for one lane.
    pub(crate) fn scalar(self, sources: [u64; 4]) -> u64 {
        let mut out = [0; WARP];
        let [a, b, c, d] = sources.map(|value| [value; WARP]);
        match self {
            Pure::One(f) => f(&mut out, &a),
            Pure::Two(f) => f(&mut out, &a, &b),
            Pure::Three(f) => f(&mut out, &a, &b, &c),
            Pure::Four(f) => f(&mut out, &a, &b, &c, &d),
        }
        out[0]
    }
}

/// A type that a lane can hold.
pub(crate) trait LaneValue: Copy {
    /// Takes the low bits of a lane.
    fn of(bits: u64) -> Self;
    /// The bits of a lane, with zeros above the value.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($ty:ty as $unsigned:ty),*) => { $(
        impl LaneValue for $ty {
            #[inline(always)]
            fn of(bits: u64) -> $ty {
                bits as $ty
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
        }
    )* };
}

integers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl LaneValue for bool {
    #[inline(always)]
    fn of(bits: u64) -> bool {
        bits & 1 != 0
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl LaneValue for f32 {
    #[inline(always)]
    fn of(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl LaneValue for f64 {
    #[inline(always)]
    fn of(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A pure function from a closure of typed scalars: `pure!(|a: u32, b: u32| a & b)`.
macro_rules! pure {
    (|$a:ident: $ta:ty| $body:expr) => {
        $crate::exec::lanes::Pure::One(|out, x| {
            for lane in 0..$crate::exec::lanes::WARP {
                let $a = <$ta as $crate::exec::lanes::LaneValue>::of(x[lane]);
                out[lane] = $crate::exec::lanes::LaneValue::bits($body);
            }
        })
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty| $body:expr) => {
        $crate::exec::lanes::Pure::Two(|out, x, y| {
            for lane in 0..$crate::exec::lanes::WARP {
                let $a = <$ta as $crate::exec::lanes::LaneValue>::of(x[lane]);
                let $b = <$tb as $crate::exec::lanes::LaneValue>::of(y[lane]);
                out[lane] = $crate::exec::lanes::LaneValue::bits($body);
            }
        })
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty| $body:expr) => {
        $crate::exec::lanes::Pure::Three(|out, x, y, z| {
            for lane in 0..$crate::exec::lanes::WARP {
                let $a = <$ta as $crate::exec::lanes::LaneValue>::of(x[lane]);
                let $b = <$tb as $crate::exec::lanes::LaneValue>::of(y[lane]);
                let $c = <$tc as $crate::exec::lanes::LaneValue>::of(z[lane]);
                out[lane] = $crate::exec::lanes::LaneValue::bits($body);
            }
        })
    };
    (|$a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty, $d:ident: $td:ty| $body:expr) => {
        $crate::exec::lanes::Pure::Four(|out, x, y, z, w| {
            for lane in 0..$crate::exec::lanes::WARP {
                let $a = <$ta as $crate::exec::lanes::LaneValue>::of(x[lane]);
                let $b = <$tb as $crate::exec::lanes::LaneValue>::of(y[lane]);
                let $c = <$tc as $crate::exec::lanes::LaneValue>::of(z[lane]);
                let $d = <$td as $crate::exec::lanes::LaneValue>::of(w[lane]);
                out[lane] = $crate::exec::lanes::LaneValue::bits($body);
            }
        })
    };
}

/// Evaluates an expression with `$T` as the Rust type of an integer type of PTX; bits count as unsigned. `None` for others.
macro_rules! with_integer {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            $crate::isa::types::Type::U8 | $crate::isa::types::Type::B8 => {
                type $T = u8;
                Some($body)
            }
            $crate::isa::types::Type::U16 | $crate::isa::types::Type::B16 => {
                type $T = u16;
                Some($body)
            }
            $crate::isa::types::Type::U32 | $crate::isa::types::Type::B32 => {
                type $T = u32;
                Some($body)
            }
            $crate::isa::types::Type::U64 | $crate::isa::types::Type::B64 => {
                type $T = u64;
                Some($body)
            }
            $crate::isa::types::Type::S8 => {
                type $T = i8;
                Some($body)
            }
            $crate::isa::types::Type::S16 => {
                type $T = i16;
                Some($body)
            }
            $crate::isa::types::Type::S32 => {
                type $T = i32;
                Some($body)
            }
            $crate::isa::types::Type::S64 => {
                type $T = i64;
                Some($body)
            }
            _ => None,
        }
    };
}

pub(crate) use pure;
pub(crate) use with_integer;
