//! Products of matrices by tensor cores.

use tilewright_core::intrinsic::Match;
use tilewright_core::stmt::Intrinsic;

use crate::emit::{Generator, Outcome, Storage, unsupported};
use crate::intrinsics::{self, Product};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;

impl Generator<'_> {
    /// The product that a marked statement is, when it is one.
    pub(super) fn product_of(&self, node: &Intrinsic) -> Option<(&'static Product, Match)> {
        let found = intrinsics::known().get(&node.name)?.matches(self.program, &node.body)?;
        Some((intrinsics::product(&node.name)?, found))
    }

    pub(super) fn product(&mut self, (product, found): (&'static Product, Match)) -> Outcome<()> {
        let mut operands = Vec::new();
        for operand in &found.operands {
            let name = &self.program.buffer(operand.buffer).name;
            let Some(Storage::Fragment(fragment)) = self.storage.get(&operand.buffer).cloned() else {
                return Err(unsupported(format!(
                    "operand `{name}` of a product by a warp, which is no fragment"
                )));
            };
            let first = self.resolve(&operand.first).as_constant();
            let place = first
                .map(|first| fragment.shape.place_of(first))
                .filter(|(lane, element)| *lane == 0 && element % fragment.shape.layout.slots() == 0);
            let Some((_, element)) = place else {
                return Err(unsupported(format!(
                    "tiles of fragment `{name}` that no constants choose; unroll the loops"
                )));
            };
            let count = fragment.shape.layout.slots() / fragment.per_register;
            let begin = element / fragment.per_register;
            let registers = &fragment.registers[begin as usize..(begin + count) as usize];
            operands.push(registers.iter().copied().map(Operand::Register).collect::<Vec<_>>());
        }
        let [first, second, sum] = &operands[..] else {
            return Err(self.broken("a product has three operands"));
        };
        let [first, second] = [first, second].map(|factor| self.factor(product, factor));
        self.builder.push_of_two(
            Op::Product,
            Some(product.ty),
            product.second,
            [sum, &first, &second, sum].into_iter().flatten().copied(),
        );
        Ok(())
    }

    /// The registers of a factor as the product takes them.
    fn factor(&mut self, product: &Product, registers: &[Operand]) -> Vec<Operand> {
        match product.rounds_factors() {
            true => {
                let rounded =
                    |register: &Operand| self.builder.compute(Op::RoundFactor, product.ty, &[*register]);
                registers.iter().map(rounded).collect()
            }
            false => registers.to_vec(),
        }
    }
}
