//! Elements as they lie in memory, and as registers hold them.

use smallvec::SmallVec;
use tilewright_core::dtype::DType;

use crate::emit::Generator;
use crate::emit::value::class_of;
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::Type;

/// The type with which one element is accessed.
pub(in crate::emit) const fn memory_type(dtype: DType) -> Type {
    match dtype {
        DType::Bool | DType::U8 => Type::U8,
        DType::I8 => Type::S8,
        DType::I16 => Type::S16,
        // The conversion to `f32` takes a register of 16 bits for one of them, a shift is enough for the other.
        DType::U16 | DType::BF16 => Type::U16,
        DType::F16 => Type::B16,
        DType::I32 | DType::U32 => Type::B32,
        DType::I64 | DType::U64 => Type::B64,
        DType::F32 => Type::F32,
        DType::F64 => Type::F64,
        DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => {
            panic!("lowering replaces elements that are only stored by bytes")
        }
    }
}

/// The type with which elements beside each other are accessed: their own where it has 32 bits or more, otherwise words.
pub(super) const fn word_type(dtype: DType) -> Type {
    if dtype.bits() < 32 { Type::B32 } else { memory_type(dtype) }
}

impl Generator<'_> {
    /// An element from what was loaded with its [`memory_type`].
    pub(in crate::emit) fn unpack_one(&mut self, dtype: DType, loaded: Operand) -> Operand {
        match dtype {
            DType::Bool => self.builder.compute(Op::NotEqual, Type::S32, &[loaded, Operand::Integer(0)]),
            DType::F16 => self.widen_half(dtype, loaded),
            DType::BF16 => self.bf16_of_low_bits(loaded),
            _ => loaded,
        }
    }

    /// The operand of a store with the [`memory_type`] of an element.
    pub(super) fn pack_one(&mut self, dtype: DType, value: Operand) -> Operand {
        match dtype {
            DType::Bool => self.bool_to_int(value),
            DType::F16 => self.narrow_to_half(dtype, value),
            DType::BF16 => {
                let half = self.narrow_to_half(dtype, value);
                self.builder.convert(Op::Convert, Type::U32, Type::U16, half)
            }
            _ => value,
        }
    }

    /// The elements in a word.
    pub(super) fn unpack_word(&mut self, dtype: DType, word: Operand) -> SmallVec<[Operand; 4]> {
        if dtype.bits() >= 32 {
            return SmallVec::from_slice(&[word]);
        }
        if dtype == DType::F16 {
            let halves = [(), ()].map(|()| Operand::Register(self.builder.register(Type::B16.class())));
            self.builder.push(Op::Unpack, Some(Type::B32), [halves[0], halves[1], word]);
            return halves.into_iter().map(|half| self.widen_half(dtype, half)).collect();
        }
        if dtype == DType::BF16 {
            let low = self.bf16_of_low_bits(word);
            let mask = Operand::Integer(0xffff_0000);
            let high = self.builder.compute(Op::And, Type::B32, &[word, mask]);
            let high = self.builder.convert(Op::Move, Type::F32, Type::B32, high);
            return SmallVec::from_slice(&[low, high]);
        }
        let ty = if matches!(dtype, DType::I8 | DType::I16) { Type::S32 } else { Type::U32 };
        let bits = dtype.bits() as i64;
        let elements = (0..32 / bits).map(|number| {
            let [first, count] = [number * bits, bits].map(Operand::Integer);
            let element = self.builder.compute(Op::ExtractBits, ty, &[word, first, count]);
            if dtype == DType::Bool { self.unpack_one(dtype, element) } else { element }
        });
        elements.collect()
    }

    /// The word that elements become.
    pub(super) fn pack_word(&mut self, dtype: DType, elements: &[Operand]) -> Operand {
        if let [element] = elements {
            let class = class_of(dtype);
            return self.in_register(class, *element);
        }
        if matches!(dtype, DType::F16 | DType::BF16) {
            let halves = [elements[0], elements[1]].map(|element| self.narrow_to_half(dtype, element));
            return self.builder.compute(Op::Pack, Type::B32, &halves);
        }
        let bits = dtype.bits() as i64;
        let mut word = Operand::Integer(0);
        for (number, element) in elements.iter().enumerate() {
            let element = if dtype == DType::Bool { self.bool_to_int(*element) } else { *element };
            let [first, count] = [number as i64 * bits, bits].map(Operand::Integer);
            word = self.builder.compute(Op::InsertBits, Type::B32, &[element, word, first, count]);
        }
        word
    }
}
