//! The table of vector operations: an instruction for each width, with and without AVX-512.

use iced_x86::Code;
use iced_x86::Code::*;

use crate::simd::VectorExtension;
use crate::simd::ir::Width;

/// Declares the operations: for each its instructions in VEX encoding with 128 and 256 bits, and in EVEX encoding
/// with 128, 256 and 512 bits; `INVALID` where there is none.
macro_rules! operations {
    ($($name:ident: $a:ident $b:ident $c:ident $d:ident $e:ident;)*) => {
        /// An operation on vectors. The number at the end is that of bits in a lane.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(in crate::simd) enum VectorOp {
            $($name,)*
        }

        impl VectorOp {
            fn codes(self) -> [Code; 5] {
                match self {
                    $(VectorOp::$name => [$a, $b, $c, $d, $e],)*
                }
            }
        }
    };
}

impl VectorOp {
    /// The instruction, if there is one.
    pub(in crate::simd) fn code(self, extension: VectorExtension, width: Width) -> Option<Code> {
        let column = match (extension, width) {
            (VectorExtension::Avx2, Width::Xmm) => 0,
            (VectorExtension::Avx2, Width::Ymm) => 1,
            (VectorExtension::Avx2, Width::Zmm) => return None,
            (VectorExtension::Avx512, Width::Xmm) => 2,
            (VectorExtension::Avx512, Width::Ymm) => 3,
            (VectorExtension::Avx512, Width::Zmm) => 4,
        };
        let code = self.codes()[column];
        (code != INVALID).then_some(code)
    }

    /// The bytes of an element that a memory operand may broadcast with AVX-512; 0 for operations without such an operand.
    pub(in crate::simd) fn broadcast_bytes(self) -> u8 {
        use VectorOp as V;
        match self {
            V::AddF32
            | V::SubF32
            | V::MulF32
            | V::DivF32
            | V::MinF32
            | V::MaxF32
            | V::SqrtF32
            | V::RoundF32
            | V::RangeF32
            | V::And32
            | V::Or32
            | V::Xor32
            | V::Add32
            | V::Sub32
            | V::Mul32
            | V::Min32
            | V::Max32
            | V::Abs32
            | V::DotU8I8
            | V::DotBf16
            | V::F32FromI32
            | V::I32FromF32
            | V::NearestI32FromF32
            | V::Compare32
            | V::CompareF32
            | V::Blend32
            | V::ShiftLeftBy32
            | V::ShiftRightBy32
            | V::ShiftSignedBy32 => 4,
            V::AddF64
            | V::SubF64
            | V::MulF64
            | V::DivF64
            | V::MinF64
            | V::MaxF64
            | V::SqrtF64
            | V::RoundF64
            | V::RangeF64
            | V::And64
            | V::Or64
            | V::Xor64
            | V::Add64
            | V::Sub64
            | V::Mul64
            | V::Min64
            | V::Max64
            | V::Abs64
            | V::Compare64
            | V::CompareF64
            | V::Blend64
            | V::ShiftLeftBy64
            | V::ShiftSignedBy64 => 8,
            _ => 0,
        }
    }

    /// Whether the last operand is an immediate one.
    pub(in crate::simd) fn takes_immediate(self) -> bool {
        use VectorOp as V;
        matches!(
            self,
            V::RoundF32
                | V::RoundF64
                | V::RangeF32
                | V::RangeF64
                | V::ShiftLeft16
                | V::ShiftRight16
                | V::ShiftSigned16
                | V::ShiftLeft32
                | V::ShiftLeft64
                | V::ShiftRight32
                | V::ShiftSigned32
                | V::ShiftSigned64
                | V::Compare32
                | V::Compare64
                | V::CompareF32
                | V::CompareF64
                | V::F16FromF32
                | V::InsertQuarter
                | V::InsertHalf
                | V::Insert32
                | V::Insert64
                | V::ShuffleParts
        )
    }

    /// The width of the last operand, where it is narrower than the others.
    pub(in crate::simd) fn part_width(self) -> Option<Width> {
        match self {
            VectorOp::InsertQuarter => Some(Width::Xmm),
            VectorOp::InsertHalf => Some(Width::Ymm),
            _ => None,
        }
    }

    /// Whether the mask selects the operand of each lane.
    pub(in crate::simd) fn chooses(self) -> bool {
        matches!(self, VectorOp::Blend32 | VectorOp::Blend64)
    }

    /// Whether the operands may be exchanged.
    pub(in crate::simd) fn commutes(self) -> bool {
        use VectorOp as V;
        matches!(
            self,
            V::AddF32
                | V::AddF64
                | V::MulF32
                | V::MulF64
                | V::And32
                | V::And64
                | V::Or32
                | V::Or64
                | V::Xor32
                | V::Xor64
                | V::Add16
                | V::Add32
                | V::Add64
                | V::Mul32
                | V::Mul64
                | V::Min32
                | V::Max32
                | V::Min64
                | V::Max64
                | V::Equal32
                | V::Equal64
                | V::DotBf16
                | V::MulAddPairs16
        )
    }

    /// The widths of the destination and of register operands when the operation itself has width `width`.
    pub(in crate::simd) fn operand_widths(self, width: Width) -> (Width, Width) {
        use VectorOp as V;
        match self {
            V::F64FromI32 | V::F64FromF32 | V::I64FromF32 | V::I64FromI32 | V::F32FromF16 | V::I32FromU16 => {
                (width, width.half())
            }
            V::I32FromI8 | V::I32FromU8 | V::Broadcast32 | V::Broadcast64 => (width, Width::Xmm),
            V::I32FromF64 | V::F32FromF64 | V::F32FromI64 | V::I32FromI64 | V::F16FromF32 | V::I16FromI32 => {
                (width.half(), width)
            }
            V::I8FromI32 | V::StoreOne32 | V::StoreOne64 => (Width::Xmm, Width::of_bytes(width.bytes())),
            V::LoadOne32 | V::LoadOne64 => (Width::Xmm, Width::Xmm),
            _ => (width, width),
        }
    }
}

operations! {
    AddF32: VEX_Vaddps_xmm_xmm_xmmm128 VEX_Vaddps_ymm_ymm_ymmm256 EVEX_Vaddps_xmm_k1z_xmm_xmmm128b32 EVEX_Vaddps_ymm_k1z_ymm_ymmm256b32 EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er;
    AddF64: VEX_Vaddpd_xmm_xmm_xmmm128 VEX_Vaddpd_ymm_ymm_ymmm256 EVEX_Vaddpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vaddpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er;
    SubF32: VEX_Vsubps_xmm_xmm_xmmm128 VEX_Vsubps_ymm_ymm_ymmm256 EVEX_Vsubps_xmm_k1z_xmm_xmmm128b32 EVEX_Vsubps_ymm_k1z_ymm_ymmm256b32 EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er;
    SubF64: VEX_Vsubpd_xmm_xmm_xmmm128 VEX_Vsubpd_ymm_ymm_ymmm256 EVEX_Vsubpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vsubpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er;
    MulF32: VEX_Vmulps_xmm_xmm_xmmm128 VEX_Vmulps_ymm_ymm_ymmm256 EVEX_Vmulps_xmm_k1z_xmm_xmmm128b32 EVEX_Vmulps_ymm_k1z_ymm_ymmm256b32 EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er;
    MulF64: VEX_Vmulpd_xmm_xmm_xmmm128 VEX_Vmulpd_ymm_ymm_ymmm256 EVEX_Vmulpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vmulpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er;
    DivF32: VEX_Vdivps_xmm_xmm_xmmm128 VEX_Vdivps_ymm_ymm_ymmm256 EVEX_Vdivps_xmm_k1z_xmm_xmmm128b32 EVEX_Vdivps_ymm_k1z_ymm_ymmm256b32 EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er;
    DivF64: VEX_Vdivpd_xmm_xmm_xmmm128 VEX_Vdivpd_ymm_ymm_ymmm256 EVEX_Vdivpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vdivpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er;
    MinF32: VEX_Vminps_xmm_xmm_xmmm128 VEX_Vminps_ymm_ymm_ymmm256 EVEX_Vminps_xmm_k1z_xmm_xmmm128b32 EVEX_Vminps_ymm_k1z_ymm_ymmm256b32 EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae;
    MinF64: VEX_Vminpd_xmm_xmm_xmmm128 VEX_Vminpd_ymm_ymm_ymmm256 EVEX_Vminpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vminpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae;
    MaxF32: VEX_Vmaxps_xmm_xmm_xmmm128 VEX_Vmaxps_ymm_ymm_ymmm256 EVEX_Vmaxps_xmm_k1z_xmm_xmmm128b32 EVEX_Vmaxps_ymm_k1z_ymm_ymmm256b32 EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae;
    MaxF64: VEX_Vmaxpd_xmm_xmm_xmmm128 VEX_Vmaxpd_ymm_ymm_ymmm256 EVEX_Vmaxpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vmaxpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae;
    ScaleF32: INVALID INVALID EVEX_Vscalefps_xmm_k1z_xmm_xmmm128b32 EVEX_Vscalefps_ymm_k1z_ymm_ymmm256b32 EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er;
    ScaleF64: INVALID INVALID EVEX_Vscalefpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vscalefpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vscalefpd_zmm_k1z_zmm_zmmm512b64_er;
    SqrtF32: VEX_Vsqrtps_xmm_xmmm128 VEX_Vsqrtps_ymm_ymmm256 EVEX_Vsqrtps_xmm_k1z_xmmm128b32 EVEX_Vsqrtps_ymm_k1z_ymmm256b32 EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er;
    SqrtF64: VEX_Vsqrtpd_xmm_xmmm128 VEX_Vsqrtpd_ymm_ymmm256 EVEX_Vsqrtpd_xmm_k1z_xmmm128b64 EVEX_Vsqrtpd_ymm_k1z_ymmm256b64 EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er;
    RoundF32: VEX_Vroundps_xmm_xmmm128_imm8 VEX_Vroundps_ymm_ymmm256_imm8 EVEX_Vrndscaleps_xmm_k1z_xmmm128b32_imm8 EVEX_Vrndscaleps_ymm_k1z_ymmm256b32_imm8 EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae;
    RoundF64: VEX_Vroundpd_xmm_xmmm128_imm8 VEX_Vroundpd_ymm_ymmm256_imm8 EVEX_Vrndscalepd_xmm_k1z_xmmm128b64_imm8 EVEX_Vrndscalepd_ymm_k1z_ymmm256b64_imm8 EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae;
    RangeF32: INVALID INVALID EVEX_Vrangeps_xmm_k1z_xmm_xmmm128b32_imm8 EVEX_Vrangeps_ymm_k1z_ymm_ymmm256b32_imm8 EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae;
    RangeF64: INVALID INVALID EVEX_Vrangepd_xmm_k1z_xmm_xmmm128b64_imm8 EVEX_Vrangepd_ymm_k1z_ymm_ymmm256b64_imm8 EVEX_Vrangepd_zmm_k1z_zmm_zmmm512b64_imm8_sae;
    And32: VEX_Vpand_xmm_xmm_xmmm128 VEX_Vpand_ymm_ymm_ymmm256 EVEX_Vpandd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpandd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
    And64: VEX_Vpand_xmm_xmm_xmmm128 VEX_Vpand_ymm_ymm_ymmm256 EVEX_Vpandq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpandq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64;
    Or32: VEX_Vpor_xmm_xmm_xmmm128 VEX_Vpor_ymm_ymm_ymmm256 EVEX_Vpord_xmm_k1z_xmm_xmmm128b32 EVEX_Vpord_ymm_k1z_ymm_ymmm256b32 EVEX_Vpord_zmm_k1z_zmm_zmmm512b32;
    Or64: VEX_Vpor_xmm_xmm_xmmm128 VEX_Vpor_ymm_ymm_ymmm256 EVEX_Vporq_xmm_k1z_xmm_xmmm128b64 EVEX_Vporq_ymm_k1z_ymm_ymmm256b64 EVEX_Vporq_zmm_k1z_zmm_zmmm512b64;
    Xor32: VEX_Vpxor_xmm_xmm_xmmm128 VEX_Vpxor_ymm_ymm_ymmm256 EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32 EVEX_Vpxord_ymm_k1z_ymm_ymmm256b32 EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32;
    Xor64: VEX_Vpxor_xmm_xmm_xmmm128 VEX_Vpxor_ymm_ymm_ymmm256 EVEX_Vpxorq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpxorq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64;
    Add16: VEX_Vpaddw_xmm_xmm_xmmm128 VEX_Vpaddw_ymm_ymm_ymmm256 EVEX_Vpaddw_xmm_k1z_xmm_xmmm128 EVEX_Vpaddw_ymm_k1z_ymm_ymmm256 EVEX_Vpaddw_zmm_k1z_zmm_zmmm512;
    Add32: VEX_Vpaddd_xmm_xmm_xmmm128 VEX_Vpaddd_ymm_ymm_ymmm256 EVEX_Vpaddd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpaddd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
    Add64: VEX_Vpaddq_xmm_xmm_xmmm128 VEX_Vpaddq_ymm_ymm_ymmm256 EVEX_Vpaddq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpaddq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64;
    Sub32: VEX_Vpsubd_xmm_xmm_xmmm128 VEX_Vpsubd_ymm_ymm_ymmm256 EVEX_Vpsubd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsubd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;
    Sub64: VEX_Vpsubq_xmm_xmm_xmmm128 VEX_Vpsubq_ymm_ymm_ymmm256 EVEX_Vpsubq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsubq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64;
    Mul32: VEX_Vpmulld_xmm_xmm_xmmm128 VEX_Vpmulld_ymm_ymm_ymmm256 EVEX_Vpmulld_xmm_k1z_xmm_xmmm128b32 EVEX_Vpmulld_ymm_k1z_ymm_ymmm256b32 EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32;
    Mul64: INVALID INVALID EVEX_Vpmullq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpmullq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpmullq_zmm_k1z_zmm_zmmm512b64;
    Min32: VEX_Vpminsd_xmm_xmm_xmmm128 VEX_Vpminsd_ymm_ymm_ymmm256 EVEX_Vpminsd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpminsd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32;
    Min64: INVALID INVALID EVEX_Vpminsq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpminsq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpminsq_zmm_k1z_zmm_zmmm512b64;
    Max32: VEX_Vpmaxsd_xmm_xmm_xmmm128 VEX_Vpmaxsd_ymm_ymm_ymmm256 EVEX_Vpmaxsd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpmaxsd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32;
    Max64: INVALID INVALID EVEX_Vpmaxsq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpmaxsq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpmaxsq_zmm_k1z_zmm_zmmm512b64;
    MinU8: VEX_Vpminub_xmm_xmm_xmmm128 VEX_Vpminub_ymm_ymm_ymmm256 EVEX_Vpminub_xmm_k1z_xmm_xmmm128 EVEX_Vpminub_ymm_k1z_ymm_ymmm256 EVEX_Vpminub_zmm_k1z_zmm_zmmm512;
    MaxU8: VEX_Vpmaxub_xmm_xmm_xmmm128 VEX_Vpmaxub_ymm_ymm_ymmm256 EVEX_Vpmaxub_xmm_k1z_xmm_xmmm128 EVEX_Vpmaxub_ymm_k1z_ymm_ymmm256 EVEX_Vpmaxub_zmm_k1z_zmm_zmmm512;
    MinI8: VEX_Vpminsb_xmm_xmm_xmmm128 VEX_Vpminsb_ymm_ymm_ymmm256 EVEX_Vpminsb_xmm_k1z_xmm_xmmm128 EVEX_Vpminsb_ymm_k1z_ymm_ymmm256 EVEX_Vpminsb_zmm_k1z_zmm_zmmm512;
    MaxI8: VEX_Vpmaxsb_xmm_xmm_xmmm128 VEX_Vpmaxsb_ymm_ymm_ymmm256 EVEX_Vpmaxsb_xmm_k1z_xmm_xmmm128 EVEX_Vpmaxsb_ymm_k1z_ymm_ymmm256 EVEX_Vpmaxsb_zmm_k1z_zmm_zmmm512;
    Abs32: VEX_Vpabsd_xmm_xmmm128 VEX_Vpabsd_ymm_ymmm256 EVEX_Vpabsd_xmm_k1z_xmmm128b32 EVEX_Vpabsd_ymm_k1z_ymmm256b32 EVEX_Vpabsd_zmm_k1z_zmmm512b32;
    Abs64: INVALID INVALID EVEX_Vpabsq_xmm_k1z_xmmm128b64 EVEX_Vpabsq_ymm_k1z_ymmm256b64 EVEX_Vpabsq_zmm_k1z_zmmm512b64;
    ShiftLeft16: VEX_Vpsllw_xmm_xmm_imm8 VEX_Vpsllw_ymm_ymm_imm8 EVEX_Vpsllw_xmm_k1z_xmmm128_imm8 EVEX_Vpsllw_ymm_k1z_ymmm256_imm8 EVEX_Vpsllw_zmm_k1z_zmmm512_imm8;
    ShiftRight16: VEX_Vpsrlw_xmm_xmm_imm8 VEX_Vpsrlw_ymm_ymm_imm8 EVEX_Vpsrlw_xmm_k1z_xmmm128_imm8 EVEX_Vpsrlw_ymm_k1z_ymmm256_imm8 EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8;
    ShiftSigned16: VEX_Vpsraw_xmm_xmm_imm8 VEX_Vpsraw_ymm_ymm_imm8 EVEX_Vpsraw_xmm_k1z_xmmm128_imm8 EVEX_Vpsraw_ymm_k1z_ymmm256_imm8 EVEX_Vpsraw_zmm_k1z_zmmm512_imm8;
    ShiftLeft32: VEX_Vpslld_xmm_xmm_imm8 VEX_Vpslld_ymm_ymm_imm8 EVEX_Vpslld_xmm_k1z_xmmm128b32_imm8 EVEX_Vpslld_ymm_k1z_ymmm256b32_imm8 EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8;
    ShiftLeft64: VEX_Vpsllq_xmm_xmm_imm8 VEX_Vpsllq_ymm_ymm_imm8 EVEX_Vpsllq_xmm_k1z_xmmm128b64_imm8 EVEX_Vpsllq_ymm_k1z_ymmm256b64_imm8 EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8;
    ShiftRight32: VEX_Vpsrld_xmm_xmm_imm8 VEX_Vpsrld_ymm_ymm_imm8 EVEX_Vpsrld_xmm_k1z_xmmm128b32_imm8 EVEX_Vpsrld_ymm_k1z_ymmm256b32_imm8 EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8;
    ShiftSigned32: VEX_Vpsrad_xmm_xmm_imm8 VEX_Vpsrad_ymm_ymm_imm8 EVEX_Vpsrad_xmm_k1z_xmmm128b32_imm8 EVEX_Vpsrad_ymm_k1z_ymmm256b32_imm8 EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8;
    ShiftSigned64: INVALID INVALID EVEX_Vpsraq_xmm_k1z_xmmm128b64_imm8 EVEX_Vpsraq_ymm_k1z_ymmm256b64_imm8 EVEX_Vpsraq_zmm_k1z_zmmm512b64_imm8;
    ShiftLeftBy32: VEX_Vpsllvd_xmm_xmm_xmmm128 VEX_Vpsllvd_ymm_ymm_ymmm256 EVEX_Vpsllvd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsllvd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32;
    ShiftRightBy32: VEX_Vpsrlvd_xmm_xmm_xmmm128 VEX_Vpsrlvd_ymm_ymm_ymmm256 EVEX_Vpsrlvd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsrlvd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32;
    ShiftSignedBy32: VEX_Vpsravd_xmm_xmm_xmmm128 VEX_Vpsravd_ymm_ymm_ymmm256 EVEX_Vpsravd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsravd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32;
    ShiftLeftBy64: VEX_Vpsllvq_xmm_xmm_xmmm128 VEX_Vpsllvq_ymm_ymm_ymmm256 EVEX_Vpsllvq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsllvq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64;
    ShiftSignedBy64: INVALID INVALID EVEX_Vpsravq_xmm_k1z_xmm_xmmm128b64 EVEX_Vpsravq_ymm_k1z_ymm_ymmm256b64 EVEX_Vpsravq_zmm_k1z_zmm_zmmm512b64;
    F32FromI32: VEX_Vcvtdq2ps_xmm_xmmm128 VEX_Vcvtdq2ps_ymm_ymmm256 EVEX_Vcvtdq2ps_xmm_k1z_xmmm128b32 EVEX_Vcvtdq2ps_ymm_k1z_ymmm256b32 EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er;
    I32FromF32: VEX_Vcvttps2dq_xmm_xmmm128 VEX_Vcvttps2dq_ymm_ymmm256 EVEX_Vcvttps2dq_xmm_k1z_xmmm128b32 EVEX_Vcvttps2dq_ymm_k1z_ymmm256b32 EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae;
    NearestI32FromF32: VEX_Vcvtps2dq_xmm_xmmm128 VEX_Vcvtps2dq_ymm_ymmm256 EVEX_Vcvtps2dq_xmm_k1z_xmmm128b32 EVEX_Vcvtps2dq_ymm_k1z_ymmm256b32 EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er;
    F64FromI32: VEX_Vcvtdq2pd_xmm_xmmm64 VEX_Vcvtdq2pd_ymm_xmmm128 EVEX_Vcvtdq2pd_xmm_k1z_xmmm64b32 EVEX_Vcvtdq2pd_ymm_k1z_xmmm128b32 EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er;
    I32FromF64: VEX_Vcvttpd2dq_xmm_xmmm128 VEX_Vcvttpd2dq_xmm_ymmm256 EVEX_Vcvttpd2dq_xmm_k1z_xmmm128b64 EVEX_Vcvttpd2dq_xmm_k1z_ymmm256b64 EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae;
    F64FromF32: VEX_Vcvtps2pd_xmm_xmmm64 VEX_Vcvtps2pd_ymm_xmmm128 EVEX_Vcvtps2pd_xmm_k1z_xmmm64b32 EVEX_Vcvtps2pd_ymm_k1z_xmmm128b32 EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae;
    F32FromF64: VEX_Vcvtpd2ps_xmm_xmmm128 VEX_Vcvtpd2ps_xmm_ymmm256 EVEX_Vcvtpd2ps_xmm_k1z_xmmm128b64 EVEX_Vcvtpd2ps_xmm_k1z_ymmm256b64 EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er;
    F64FromI64: INVALID INVALID EVEX_Vcvtqq2pd_xmm_k1z_xmmm128b64 EVEX_Vcvtqq2pd_ymm_k1z_ymmm256b64 EVEX_Vcvtqq2pd_zmm_k1z_zmmm512b64_er;
    F32FromI64: INVALID INVALID EVEX_Vcvtqq2ps_xmm_k1z_xmmm128b64 EVEX_Vcvtqq2ps_xmm_k1z_ymmm256b64 EVEX_Vcvtqq2ps_ymm_k1z_zmmm512b64_er;
    I64FromF64: INVALID INVALID EVEX_Vcvttpd2qq_xmm_k1z_xmmm128b64 EVEX_Vcvttpd2qq_ymm_k1z_ymmm256b64 EVEX_Vcvttpd2qq_zmm_k1z_zmmm512b64_sae;
    I64FromF32: INVALID INVALID EVEX_Vcvttps2qq_xmm_k1z_xmmm64b32 EVEX_Vcvttps2qq_ymm_k1z_xmmm128b32 EVEX_Vcvttps2qq_zmm_k1z_ymmm256b32_sae;
    I64FromI32: VEX_Vpmovsxdq_xmm_xmmm64 VEX_Vpmovsxdq_ymm_xmmm128 EVEX_Vpmovsxdq_xmm_k1z_xmmm64 EVEX_Vpmovsxdq_ymm_k1z_xmmm128 EVEX_Vpmovsxdq_zmm_k1z_ymmm256;
    I32FromI64: INVALID INVALID EVEX_Vpmovqd_xmmm64_k1z_xmm EVEX_Vpmovqd_xmmm128_k1z_ymm EVEX_Vpmovqd_ymmm256_k1z_zmm;
    F32FromF16: VEX_Vcvtph2ps_xmm_xmmm64 VEX_Vcvtph2ps_ymm_xmmm128 EVEX_Vcvtph2ps_xmm_k1z_xmmm64 EVEX_Vcvtph2ps_ymm_k1z_xmmm128 EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae;
    F16FromF32: VEX_Vcvtps2ph_xmmm64_xmm_imm8 VEX_Vcvtps2ph_xmmm128_ymm_imm8 EVEX_Vcvtps2ph_xmmm64_k1z_xmm_imm8 EVEX_Vcvtps2ph_xmmm128_k1z_ymm_imm8 EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae;
    I32FromI8: VEX_Vpmovsxbd_xmm_xmmm32 VEX_Vpmovsxbd_ymm_xmmm64 EVEX_Vpmovsxbd_xmm_k1z_xmmm32 EVEX_Vpmovsxbd_ymm_k1z_xmmm64 EVEX_Vpmovsxbd_zmm_k1z_xmmm128;
    I32FromU8: VEX_Vpmovzxbd_xmm_xmmm32 VEX_Vpmovzxbd_ymm_xmmm64 EVEX_Vpmovzxbd_xmm_k1z_xmmm32 EVEX_Vpmovzxbd_ymm_k1z_xmmm64 EVEX_Vpmovzxbd_zmm_k1z_xmmm128;
    I32FromU16: VEX_Vpmovzxwd_xmm_xmmm64 VEX_Vpmovzxwd_ymm_xmmm128 EVEX_Vpmovzxwd_xmm_k1z_xmmm64 EVEX_Vpmovzxwd_ymm_k1z_xmmm128 EVEX_Vpmovzxwd_zmm_k1z_ymmm256;
    I8FromI32: INVALID INVALID EVEX_Vpmovdb_xmmm32_k1z_xmm EVEX_Vpmovdb_xmmm64_k1z_ymm EVEX_Vpmovdb_xmmm128_k1z_zmm;
    I16FromI32: INVALID INVALID EVEX_Vpmovdw_xmmm64_k1z_xmm EVEX_Vpmovdw_xmmm128_k1z_ymm EVEX_Vpmovdw_ymmm256_k1z_zmm;
    Load: VEX_Vmovups_xmm_xmmm128 VEX_Vmovups_ymm_ymmm256 EVEX_Vmovups_xmm_k1z_xmmm128 EVEX_Vmovups_ymm_k1z_ymmm256 EVEX_Vmovups_zmm_k1z_zmmm512;
    Store: VEX_Vmovups_xmmm128_xmm VEX_Vmovups_ymmm256_ymm EVEX_Vmovups_xmmm128_k1z_xmm EVEX_Vmovups_ymmm256_k1z_ymm EVEX_Vmovups_zmmm512_k1z_zmm;
    Load64: VEX_Vmovupd_xmm_xmmm128 VEX_Vmovupd_ymm_ymmm256 EVEX_Vmovupd_xmm_k1z_xmmm128 EVEX_Vmovupd_ymm_k1z_ymmm256 EVEX_Vmovupd_zmm_k1z_zmmm512;
    Stream: VEX_Vmovntps_m128_xmm VEX_Vmovntps_m256_ymm EVEX_Vmovntps_m128_xmm EVEX_Vmovntps_m256_ymm EVEX_Vmovntps_m512_zmm;
    Store64: VEX_Vmovupd_xmmm128_xmm VEX_Vmovupd_ymmm256_ymm EVEX_Vmovupd_xmmm128_k1z_xmm EVEX_Vmovupd_ymmm256_k1z_ymm EVEX_Vmovupd_zmmm512_k1z_zmm;
    LoadSome32: VEX_Vpmaskmovd_xmm_xmm_m128 VEX_Vpmaskmovd_ymm_ymm_m256 INVALID INVALID INVALID;
    LoadSome64: VEX_Vpmaskmovq_xmm_xmm_m128 VEX_Vpmaskmovq_ymm_ymm_m256 INVALID INVALID INVALID;
    LoadOne32: VEX_Vmovss_xmm_m32 VEX_Vmovss_xmm_m32 EVEX_Vmovss_xmm_k1z_m32 EVEX_Vmovss_xmm_k1z_m32 EVEX_Vmovss_xmm_k1z_m32;
    StoreOne32: VEX_Vmovss_m32_xmm VEX_Vmovss_m32_xmm EVEX_Vmovss_m32_k1_xmm EVEX_Vmovss_m32_k1_xmm EVEX_Vmovss_m32_k1_xmm;
    LoadOne64: VEX_Vmovsd_xmm_m64 VEX_Vmovsd_xmm_m64 EVEX_Vmovsd_xmm_k1z_m64 EVEX_Vmovsd_xmm_k1z_m64 EVEX_Vmovsd_xmm_k1z_m64;
    StoreOne64: VEX_Vmovsd_m64_xmm VEX_Vmovsd_m64_xmm EVEX_Vmovsd_m64_k1_xmm EVEX_Vmovsd_m64_k1_xmm EVEX_Vmovsd_m64_k1_xmm;
    Broadcast32: VEX_Vpbroadcastd_xmm_xmmm32 VEX_Vpbroadcastd_ymm_xmmm32 EVEX_Vbroadcastss_xmm_k1z_xmmm32 EVEX_Vbroadcastss_ymm_k1z_xmmm32 EVEX_Vbroadcastss_zmm_k1z_xmmm32;
    Broadcast64: VEX_Vpbroadcastq_xmm_xmmm64 VEX_Vpbroadcastq_ymm_xmmm64 EVEX_Vpbroadcastq_xmm_k1z_xmmm64 EVEX_Vpbroadcastq_ymm_k1z_xmmm64 EVEX_Vpbroadcastq_zmm_k1z_xmmm64;
    Compare32: INVALID INVALID EVEX_Vpcmpd_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vpcmpd_kr_k1_ymm_ymmm256b32_imm8 EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
    Compare64: INVALID INVALID EVEX_Vpcmpq_kr_k1_xmm_xmmm128b64_imm8 EVEX_Vpcmpq_kr_k1_ymm_ymmm256b64_imm8 EVEX_Vpcmpq_kr_k1_zmm_zmmm512b64_imm8;
    CompareF32: VEX_Vcmpps_xmm_xmm_xmmm128_imm8 VEX_Vcmpps_ymm_ymm_ymmm256_imm8 EVEX_Vcmpps_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vcmpps_kr_k1_ymm_ymmm256b32_imm8 EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
    CompareF64: VEX_Vcmppd_xmm_xmm_xmmm128_imm8 VEX_Vcmppd_ymm_ymm_ymmm256_imm8 EVEX_Vcmppd_kr_k1_xmm_xmmm128b64_imm8 EVEX_Vcmppd_kr_k1_ymm_ymmm256b64_imm8 EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;
    Greater32: VEX_Vpcmpgtd_xmm_xmm_xmmm128 VEX_Vpcmpgtd_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    Equal32: VEX_Vpcmpeqd_xmm_xmm_xmmm128 VEX_Vpcmpeqd_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    Greater64: VEX_Vpcmpgtq_xmm_xmm_xmmm128 VEX_Vpcmpgtq_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    Equal64: VEX_Vpcmpeqq_xmm_xmm_xmmm128 VEX_Vpcmpeqq_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    Blend32: INVALID INVALID EVEX_Vblendmps_xmm_k1z_xmm_xmmm128b32 EVEX_Vblendmps_ymm_k1z_ymm_ymmm256b32 EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32;
    Blend64: INVALID INVALID EVEX_Vblendmpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vblendmpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vblendmpd_zmm_k1z_zmm_zmmm512b64;
    BlendBytes: VEX_Vpblendvb_xmm_xmm_xmmm128_xmm VEX_Vpblendvb_ymm_ymm_ymmm256_ymm INVALID INVALID INVALID;
    Gather32: VEX_Vgatherdps_xmm_vm32x_xmm VEX_Vgatherdps_ymm_vm32y_ymm EVEX_Vgatherdps_xmm_k1_vm32x EVEX_Vgatherdps_ymm_k1_vm32y EVEX_Vgatherdps_zmm_k1_vm32z;
    Gather64: VEX_Vgatherdpd_xmm_vm32x_xmm VEX_Vgatherdpd_ymm_vm32x_ymm EVEX_Vgatherdpd_xmm_k1_vm32x EVEX_Vgatherdpd_ymm_k1_vm32x EVEX_Vgatherdpd_zmm_k1_vm32y;
    MulAdd132F32: VEX_Vfmadd132ps_xmm_xmm_xmmm128 VEX_Vfmadd132ps_ymm_ymm_ymmm256 EVEX_Vfmadd132ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd132ps_ymm_k1z_ymm_ymmm256b32 EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er;
    MulAdd132F64: VEX_Vfmadd132pd_xmm_xmm_xmmm128 VEX_Vfmadd132pd_ymm_ymm_ymmm256 EVEX_Vfmadd132pd_xmm_k1z_xmm_xmmm128b64 EVEX_Vfmadd132pd_ymm_k1z_ymm_ymmm256b64 EVEX_Vfmadd132pd_zmm_k1z_zmm_zmmm512b64_er;
    MulAdd213F32: VEX_Vfmadd213ps_xmm_xmm_xmmm128 VEX_Vfmadd213ps_ymm_ymm_ymmm256 EVEX_Vfmadd213ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd213ps_ymm_k1z_ymm_ymmm256b32 EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er;
    MulAdd213F64: VEX_Vfmadd213pd_xmm_xmm_xmmm128 VEX_Vfmadd213pd_ymm_ymm_ymmm256 EVEX_Vfmadd213pd_xmm_k1z_xmm_xmmm128b64 EVEX_Vfmadd213pd_ymm_k1z_ymm_ymmm256b64 EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er;
    MulAdd231F32: VEX_Vfmadd231ps_xmm_xmm_xmmm128 VEX_Vfmadd231ps_ymm_ymm_ymmm256 EVEX_Vfmadd231ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vfmadd231ps_ymm_k1z_ymm_ymmm256b32 EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er;
    MulAdd231F64: VEX_Vfmadd231pd_xmm_xmm_xmmm128 VEX_Vfmadd231pd_ymm_ymm_ymmm256 EVEX_Vfmadd231pd_xmm_k1z_xmm_xmmm128b64 EVEX_Vfmadd231pd_ymm_k1z_ymm_ymmm256b64 EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er;
    MulAddPairsU8I8: VEX_Vpmaddubsw_xmm_xmm_xmmm128 VEX_Vpmaddubsw_ymm_ymm_ymmm256 EVEX_Vpmaddubsw_xmm_k1z_xmm_xmmm128 EVEX_Vpmaddubsw_ymm_k1z_ymm_ymmm256 EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512;
    MulAddPairs16: VEX_Vpmaddwd_xmm_xmm_xmmm128 VEX_Vpmaddwd_ymm_ymm_ymmm256 EVEX_Vpmaddwd_xmm_k1z_xmm_xmmm128 EVEX_Vpmaddwd_ymm_k1z_ymm_ymmm256 EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512;
    DotU8I8: VEX_Vpdpbusd_xmm_xmm_xmmm128 VEX_Vpdpbusd_ymm_ymm_ymmm256 EVEX_Vpdpbusd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpdpbusd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpdpbusd_zmm_k1z_zmm_zmmm512b32;
    DotI8I8: VEX_Vpdpbssd_xmm_xmm_xmmm128 VEX_Vpdpbssd_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    DotU8U8: VEX_Vpdpbuud_xmm_xmm_xmmm128 VEX_Vpdpbuud_ymm_ymm_ymmm256 INVALID INVALID INVALID;
    DotBf16: INVALID INVALID EVEX_Vdpbf16ps_xmm_k1z_xmm_xmmm128b32 EVEX_Vdpbf16ps_ymm_k1z_ymm_ymmm256b32 EVEX_Vdpbf16ps_zmm_k1z_zmm_zmmm512b32;
    Align32: INVALID INVALID EVEX_Valignd_xmm_k1z_xmm_xmmm128b32_imm8 EVEX_Valignd_ymm_k1z_ymm_ymmm256b32_imm8 EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8;
    Align64: INVALID INVALID EVEX_Valignq_xmm_k1z_xmm_xmmm128b64_imm8 EVEX_Valignq_ymm_k1z_ymm_ymmm256b64_imm8 EVEX_Valignq_zmm_k1z_zmm_zmmm512b64_imm8;
    Permute32: INVALID VEX_Vpermd_ymm_ymm_ymmm256 INVALID EVEX_Vpermd_ymm_k1z_ymm_ymmm256b32 EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32;
    PermuteBytes: INVALID INVALID EVEX_Vpermi2b_xmm_k1z_xmm_xmmm128 EVEX_Vpermi2b_ymm_k1z_ymm_ymmm256 EVEX_Vpermi2b_zmm_k1z_zmm_zmmm512;
    ShuffleBytes: VEX_Vpshufb_xmm_xmm_xmmm128 VEX_Vpshufb_ymm_ymm_ymmm256 EVEX_Vpshufb_xmm_k1z_xmm_xmmm128 EVEX_Vpshufb_ymm_k1z_ymm_ymmm256 EVEX_Vpshufb_zmm_k1z_zmm_zmmm512;
    UnpackLow32: VEX_Vunpcklps_xmm_xmm_xmmm128 VEX_Vunpcklps_ymm_ymm_ymmm256 EVEX_Vunpcklps_xmm_k1z_xmm_xmmm128b32 EVEX_Vunpcklps_ymm_k1z_ymm_ymmm256b32 EVEX_Vunpcklps_zmm_k1z_zmm_zmmm512b32;
    UnpackHigh32: VEX_Vunpckhps_xmm_xmm_xmmm128 VEX_Vunpckhps_ymm_ymm_ymmm256 EVEX_Vunpckhps_xmm_k1z_xmm_xmmm128b32 EVEX_Vunpckhps_ymm_k1z_ymm_ymmm256b32 EVEX_Vunpckhps_zmm_k1z_zmm_zmmm512b32;
    UnpackLow64: VEX_Vunpcklpd_xmm_xmm_xmmm128 VEX_Vunpcklpd_ymm_ymm_ymmm256 EVEX_Vunpcklpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vunpcklpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vunpcklpd_zmm_k1z_zmm_zmmm512b64;
    UnpackHigh64: VEX_Vunpckhpd_xmm_xmm_xmmm128 VEX_Vunpckhpd_ymm_ymm_ymmm256 EVEX_Vunpckhpd_xmm_k1z_xmm_xmmm128b64 EVEX_Vunpckhpd_ymm_k1z_ymm_ymmm256b64 EVEX_Vunpckhpd_zmm_k1z_zmm_zmmm512b64;
    ShuffleParts: INVALID VEX_Vperm2f128_ymm_ymm_ymmm256_imm8 INVALID INVALID EVEX_Vshuff32x4_zmm_k1z_zmm_zmmm512b32_imm8;
    InsertQuarter: INVALID VEX_Vinserti128_ymm_ymm_xmmm128_imm8 INVALID EVEX_Vinserti32x4_ymm_k1z_ymm_xmmm128_imm8 EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8;
    InsertHalf: INVALID INVALID INVALID INVALID EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8;
    Insert32: VEX_Vpinsrd_xmm_xmm_rm32_imm8 INVALID EVEX_Vpinsrd_xmm_xmm_rm32_imm8 INVALID INVALID;
    Insert64: VEX_Vpinsrq_xmm_xmm_rm64_imm8 INVALID EVEX_Vpinsrq_xmm_xmm_rm64_imm8 INVALID INVALID;
}
