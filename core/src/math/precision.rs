//! The two floating-point formats that functions are computed in.

/// A floating-point format that functions are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE 754 binary32, with 32-bit integers beside it.
    Single,
    /// IEEE 754 binary64, with 64-bit integers beside it.
    Double,
}

impl Precision {
    /// The value for this precision among two.
    #[inline]
    pub(super) const fn pick<T: Copy>(self, single: T, double: T) -> T {
        match self {
            Precision::Single => single,
            Precision::Double => double,
        }
    }

    /// The number of stored bits of the significand.
    #[inline]
    pub(super) const fn mantissa_bits(self) -> u32 {
        self.pick(23, 52)
    }

    /// The bias of stored exponents.
    #[inline]
    pub(super) const fn bias(self) -> i64 {
        self.pick(127, 1023)
    }

    /// 1.5 times the least number whose unit in the last place is 1: adding it to a small number rounds
    /// that to an integer, which then stands in the low bits of the sum.
    #[inline]
    pub(super) const fn magic(self) -> f64 {
        self.pick(12_582_912.0, 6_755_399_441_055_744.0)
    }

    /// The bits of [`Precision::magic`].
    #[inline]
    pub(super) const fn magic_bits(self) -> i64 {
        self.pick(0x4b40_0000, 0x4338_0000_0000_0000)
    }

    /// The bits of 1.
    #[inline]
    pub(super) const fn one_bits(self) -> i64 {
        self.bias() << self.mantissa_bits()
    }

    /// The bits of the root of one half.
    #[inline]
    pub(super) const fn root_half_bits(self) -> i64 {
        self.pick(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd)
    }

    /// The integer of which only the sign bit is set.
    #[inline]
    pub(super) const fn sign_bit(self) -> i64 {
        self.pick(i32::MIN as i64, i64::MIN)
    }

    /// The least positive normal number.
    #[inline]
    pub(super) const fn min_positive(self) -> f64 {
        self.pick(f32::MIN_POSITIVE as f64, f64::MIN_POSITIVE)
    }

    /// A quarter of the least power of two that is not finite.
    #[inline]
    pub(super) const fn huge(self) -> f64 {
        self.pick(8.507_059_173_023_462e37, 4.494_232_837_155_79e307)
    }

    /// The least number from which on all are integers.
    #[inline]
    pub(super) const fn whole(self) -> f64 {
        self.pick(8_388_608.0, 4_503_599_627_370_496.0)
    }
}
