//! Exchanges between the lanes of a warp.

use tilewright_core::stmt::{Shuffle, Stmt};

use super::{Generator, Outcome};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The number of the last lane of a group of 32, to which partners are clamped.
const LAST_LANE: i64 = 31;

/// All lanes take part.
const ALL_LANES: i64 = -1;

impl Generator<'_> {
    /// Writes the exchange of one value of each lane with its partner.
    pub(super) fn shuffle(&mut self, node: &Shuffle) -> Outcome<()> {
        let Stmt::Store(store) = &node.body else {
            return Err(self.broken("an exchange of values is no store"));
        };
        self.memos.push(Default::default());
        let value = self.value(&store.value, 0);
        let outcome = value.and_then(|value| {
            let partner = self.of_partner(value, i64::from(node.mask));
            self.store(store.buffer, &store.indices, &[partner])
        });
        self.memos.pop();
        outcome
    }

    /// The value of the partner, in a register of the same class.
    fn of_partner(&mut self, value: Operand, mask: i64) -> Operand {
        let Operand::Register(register) = value else {
            // A constant is the same in all lanes.
            return value;
        };
        match register.class {
            Class::Word => self.exchanged(Type::B32, value, mask),
            Class::Float => self.exchanged(Type::F32, value, mask),
            Class::Predicate => {
                let word = self.builder.compute(
                    Op::Select,
                    Type::B32,
                    &[Operand::Integer(1), Operand::Integer(0), value],
                );
                let word = self.exchanged(Type::B32, word, mask);
                self.builder.compute(Op::NotEqual, Type::S32, &[word, Operand::Integer(0)])
            }
            Class::Half => {
                let word = self.builder.convert(Op::Convert, Type::U32, Type::U16, value);
                let word = self.exchanged(Type::B32, word, mask);
                self.builder.convert(Op::Convert, Type::U16, Type::U32, word)
            }
            Class::Double => self.exchanged_double(value, mask),
            Class::DoubleFloat => {
                let bits = self.builder.convert(Op::Move, Type::B64, Type::F64, value);
                let bits = self.exchanged_double(bits, mask);
                self.builder.convert(Op::Move, Type::F64, Type::B64, bits)
            }
        }
    }

    fn exchanged(&mut self, ty: Type, value: Operand, mask: i64) -> Operand {
        let sources =
            [value, Operand::Integer(mask), Operand::Integer(LAST_LANE), Operand::Integer(ALL_LANES)];
        self.builder.compute(Op::Shuffle, ty, &sources)
    }

    /// Both words of a 64-bit value.
    fn exchanged_double(&mut self, value: Operand, mask: i64) -> Operand {
        let bits = Operand::Integer(32);
        let low = self.builder.convert(Op::Convert, Type::U32, Type::U64, value);
        let high = self.builder.compute(Op::ShiftRight, Type::U64, &[value, bits]);
        let high = self.builder.convert(Op::Convert, Type::U32, Type::U64, high);
        let [low, high] = [low, high].map(|word| self.exchanged(Type::B32, word, mask));
        let low = self.builder.convert(Op::Convert, Type::U64, Type::U32, low);
        let high = self.builder.convert(Op::Convert, Type::U64, Type::U32, high);
        let high = self.builder.compute(Op::ShiftLeft, Type::B64, &[high, bits]);
        self.builder.compute(Op::Or, Type::B64, &[low, high])
    }
}
