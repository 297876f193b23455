//! Tensors inside references.

use std::ops::{Deref, DerefMut};

use tilewright_core::tensor::{Element, TensorView, TensorViewMut, checked_len};

use crate::Error;

/// The elements of a tensor, with the name that the definition gives it.
#[derive(Debug)]
pub struct Elements<S, const RANK: usize> {
    name: &'static str,
    elements: S,
    shape: [usize; RANK],
    strides: [usize; RANK],
}

impl<T: Element, S: Deref<Target = [T]>, const RANK: usize> Elements<S, RANK> {
    /// Elements in row-major order; as many as the shape has.
    pub(super) fn new(name: &'static str, elements: S, shape: [usize; RANK]) -> Self {
        debug_assert_eq!(elements.len(), shape.iter().product::<usize>(), "elements of `{name}`");
        let mut strides = [1; RANK];
        for axis in (1..RANK).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Elements { name, elements, shape, strides }
    }

    /// `tensor[[index]]`
    ///
    /// # Errors
    /// [`Error::Subscript`] when the index lies outside.
    #[inline(always)]
    pub fn load(&self, index: [usize; RANK]) -> Result<T, Error> {
        match self.position(index).and_then(|position| self.elements.get(position)) {
            Some(element) => Ok(*element),
            None => Err(self.outside(index)),
        }
    }

    // References run in unoptimised programs too: plain loops, and no `Error` on the way.
    #[inline(always)]
    fn position(&self, index: [usize; RANK]) -> Option<usize> {
        let (mut position, mut axis) = (0, 0);
        while axis < RANK {
            if index[axis] >= self.shape[axis] {
                return None;
            }
            position += index[axis] * self.strides[axis];
            axis += 1;
        }
        Some(position)
    }

    #[cold]
    fn outside(&self, index: [usize; RANK]) -> Error {
        Error::Subscript { tensor: self.name.to_owned(), index: index.to_vec(), shape: self.shape.to_vec() }
    }
}

impl<T: Element, S: DerefMut<Target = [T]>, const RANK: usize> Elements<S, RANK> {
    /// `tensor[[index]] = value;`
    ///
    /// # Errors
    /// [`Error::Subscript`] when the index lies outside.
    #[inline(always)]
    pub fn store(&mut self, index: [usize; RANK], value: T) -> Result<(), Error> {
        *self.place(index)? = value;
        Ok(())
    }

    /// `tensor[[index]] = with(tensor[[index]], value);`
    ///
    /// # Errors
    /// [`Error::Subscript`] when the index lies outside.
    #[inline(always)]
    pub fn update(
        &mut self,
        index: [usize; RANK],
        value: T,
        with: impl FnOnce(T, T) -> T,
    ) -> Result<(), Error> {
        let place = self.place(index)?;
        *place = with(*place, value);
        Ok(())
    }

    #[inline(always)]
    fn place(&mut self, index: [usize; RANK]) -> Result<&mut T, Error> {
        match self.position(index) {
            Some(position) => Ok(&mut self.elements[position]),
            None => Err(self.outside(index)),
        }
    }

    /// The same tensor with one value in every element.
    pub fn filled(mut self, value: T) -> Self {
        let len: usize = self.shape.iter().product();
        if self.elements.len() == len {
            self.elements.fill(value);
            return self;
        }
        // The elements between these belong to another tensor.
        for number in 0..len {
            let mut index = [0; RANK];
            let mut rest = number;
            for axis in (0..RANK).rev() {
                (index[axis], rest) = (rest % self.shape[axis], rest / self.shape[axis]);
            }
            if let Some(position) = self.position(index) {
                self.elements[position] = value;
            }
        }
        self
    }
}

/// An argument that is read, by its strides.
pub fn read<'a, T: Element, const RANK: usize>(
    name: &'static str,
    view: &'a TensorView<'_, T, RANK>,
) -> Elements<&'a [T], RANK> {
    match view.memory() {
        (elements, None) => Elements::new(name, elements, view.shape()),
        (elements, Some(_)) => Elements { name, elements, shape: view.shape(), strides: view.strides() },
    }
}

/// An argument or a result that is written, by its strides.
pub fn write<'a, T: Element, const RANK: usize>(
    name: &'static str,
    view: &'a mut TensorViewMut<'_, T, RANK>,
) -> Elements<&'a mut [T], RANK> {
    let (shape, strides, is_dense) = (view.shape(), view.strides(), view.is_contiguous());
    let elements = view.memory_mut();
    if is_dense { Elements::new(name, elements, shape) } else { Elements { name, elements, shape, strides } }
}

/// A tensor of the definition's own that is not returned.
///
/// # Errors
/// [`Error::Shape`] when it does not fit into memory.
pub fn intermediate<T: Element, const RANK: usize>(
    name: &'static str,
    shape: [usize; RANK],
    value: T,
) -> Result<Elements<Vec<T>, RANK>, Error> {
    let length = checked_len(&shape, size_of::<T>())?;
    Ok(Elements::new(name, vec![value; length], shape))
}

/// The element zero.
pub fn zero<T: Element>() -> T {
    T::default()
}

/// The value of a dimension.
pub fn size(dims: &[i64], position: usize) -> usize {
    usize::try_from(dims[position]).unwrap_or(0)
}

/// A dimension whose name is that of a constant, and whose size is not the constant's.
#[cold]
pub fn constant_dimension(name: &'static str, dims: &[i64], position: usize) -> Error {
    Error::ConstantDimension { dimension: name, found: dims[position] }
}

/// `range.step_by(step)`
///
/// # Errors
/// [`Error::NegativeIndex`] when the step is zero.
pub fn stepped<R: Iterator<Item = usize>>(range: R, step: usize) -> Result<std::iter::StepBy<R>, Error> {
    if step == 0 {
        return Err(Error::NegativeIndex("a loop has a step of 0".to_owned()));
    }
    Ok(range.step_by(step))
}
