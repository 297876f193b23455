//! Updates of elements in one step, which threads make at the same time.

use tilewright_core::analysis::block::{Reducer, reduction_of};
use tilewright_core::dtype::DType;
use tilewright_core::stmt::Store;
use tilewright_core::target::GpuTarget;

use crate::emit::value::ordered_type;
use crate::emit::{Generator, Outcome, Place, Storage, unsupported};
use crate::ptx::table::{Combination, Op, Space};
use crate::ptx::types::Type;

impl Generator<'_> {
    /// Combines an element with a value in one step. The answer is whether the element is in memory that threads share: in that of one thread, it is
    /// stored to as usual.
    pub(in crate::emit) fn update(&mut self, store: &Store) -> Outcome<bool> {
        let place = match self.storage_of(store.buffer)? {
            Storage::Memory(place) if matches!(place.space, Space::Global | Space::Shared) => place,
            _ => return Ok(false),
        };
        let dtype = self.program.buffer(store.buffer).dtype;
        let found = reduction_of(store).ok_or_else(|| self.broken("an atomic store is no update"))?;
        let is_known = GpuTarget::updates_atomically(found.reducer, dtype);
        let (how, ty) = combination(found.reducer, dtype).filter(|_| is_known).ok_or_else(|| {
            unsupported(format!("an update in one step by `{}` of {dtype}", found.reducer.op().text()))
        })?;
        let index = self.single_index(&store.indices)?;
        let value = self.value(found.value, 0)?;
        self.forget_elements(store.buffer);
        let address = self.address(store.buffer, Place { is_streamed: false, ..place }, &index)?;
        self.builder.push(Op::Update(place.space, how), Some(ty), [address, value]);
        Ok(true)
    }
}

/// The instruction that combines elements of a type, which the target has.
fn combination(reducer: Reducer, dtype: DType) -> Option<(Combination, Type)> {
    match reducer {
        Reducer::Sum => Some((Combination::Add, unsigned(ordered_type(dtype)))),
        Reducer::Min | Reducer::Minimum => Some((Combination::Min, ordered_type(dtype))),
        Reducer::Max | Reducer::Maximum => Some((Combination::Max, ordered_type(dtype))),
        Reducer::Product => None,
    }
}

/// The type that stands for both signs in sums.
const fn unsigned(ty: Type) -> Type {
    match ty {
        Type::S32 => Type::U32,
        Type::S64 => Type::U64,
        _ => ty,
    }
}
