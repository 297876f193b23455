//! Loops and scans.

use crate::interpret::{Failure, Frame};
use crate::ir::{Loop, Scan, ScanOrder};
use crate::operator::{Fault, Value, concat, slice_at};
use crate::tensor::{ElementType, HostTensor};

/// The truth of a tensor with one element; models give conditions of shape `[1]` as well as of rank 0.
pub(super) fn truth(value: &Value) -> Result<bool, Fault> {
    match value.as_tensor().and_then(HostTensor::as_slice::<bool>) {
        Some(&[truth]) => Ok(truth),
        _ => Err(Fault("a condition must be a tensor with one truth value".to_owned())),
    }
}

fn tensor(value: Value) -> Result<HostTensor, Fault> {
    match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(Fault("only tensors can be stacked".to_owned())),
    }
}

/// Stacks slices along a new dimension.
fn stack(slices: Vec<HostTensor>, order: ScanOrder) -> Result<Value, Fault> {
    let Some(first) = slices.first() else {
        return Err(Fault("there are no slices to be stacked".to_owned()));
    };
    let rank = first.rank() as i64 + 1;
    let axis = if order.axis < 0 { order.axis + rank } else { order.axis };
    if !(0..rank).contains(&axis) {
        return Err(Fault(format!("axis {} is outside a tensor of rank {rank}", order.axis)));
    }
    let widened = slices.iter().map(|slice| {
        let mut shape = slice.shape().to_vec();
        shape.insert(axis as usize, 1);
        slice.reshape(&shape)
    });
    let mut widened = widened.collect::<Result<Vec<_>, _>>()?;
    if order.reverse {
        widened.reverse();
    }
    Ok(concat(&widened.iter().collect::<Vec<_>>(), axis)?.into())
}

impl<'m> Frame<'_, 'm> {
    pub(super) fn run_loop(&mut self, operation: &'m Loop) -> Result<Vec<Value>, Failure> {
        let trip_count = match operation.trip_count {
            None => u64::MAX,
            Some(value) => {
                match tensor(self.get(value)?)?.cast(ElementType::I64).map_err(Fault::from)?.as_slice::<i64>()
                {
                    Some(&[count]) => u64::try_from(count).unwrap_or(0),
                    _ => return Err(Fault("the trip count must be one number".to_owned()).into()),
                }
            }
        };
        let mut condition = match operation.condition {
            None => true,
            Some(value) => truth(&self.get(value)?)?,
        };
        let mut carried = self.get_all(&operation.carried)?;
        let stacked = operation.body.results.len() - 1 - carried.len();
        let mut slices: Vec<Vec<HostTensor>> = vec![Vec::new(); stacked];
        let mut iteration = 0;
        while condition && iteration < trip_count {
            if iteration >= self.interpreter.iterations {
                let reason =
                    format!("the loop has not ended after {iteration} iterations, the most that are allowed");
                return Err(Fault(reason).into());
            }
            self.interpreter.check_interruption()?;
            let number = HostTensor::scalar(iteration as i64).into();
            let arguments = [number, HostTensor::scalar(condition).into()].into_iter().chain(carried);
            for (&parameter, argument) in operation.body.parameters.iter().zip(arguments) {
                self.values[parameter.index()] = Some(argument);
            }
            let mut results = self.run_inner(&operation.body)?.into_iter();
            condition = results.next().map_or(Ok(false), |next| truth(&next))?;
            carried = results.by_ref().take(operation.carried.len()).collect();
            for (slices, slice) in slices.iter_mut().zip(results) {
                slices.push(tensor(slice)?);
            }
            iteration += 1;
        }
        for (place, slices) in slices.into_iter().enumerate() {
            carried.push(if slices.is_empty() {
                self.empty_stack(operation, place + 1 + operation.carried.len())?
            } else {
                stack(slices, ScanOrder { axis: 0, reverse: false })?
            });
        }
        Ok(carried)
    }

    /// The stacked result of a loop without iterations: extent 0, then the known extents of a slice.
    fn empty_stack(&self, operation: &Loop, place: usize) -> Result<Value, Fault> {
        let ty = &self.function.value(operation.body.results[place]).ty;
        let inner = ty.extents().unwrap_or_default().iter().map(|extent| {
            let extent = self.symbols.evaluate(extent).and_then(|extent| usize::try_from(extent).ok());
            extent.unwrap_or(0)
        });
        let shape: Vec<usize> = std::iter::once(0).chain(inner).collect();
        Ok(HostTensor::zeros(ty.element().unwrap_or(ElementType::F32), &shape)?.into())
    }

    pub(super) fn run_scan(&mut self, operation: &'m Scan) -> Result<Vec<Value>, Failure> {
        let mut states = self.get_all(&operation.states)?;
        let inputs = operation.inputs.iter().map(|input| tensor(self.get(input.value)?));
        let inputs = inputs.collect::<Result<Vec<_>, Fault>>()?;
        let length = |(input, order): (&HostTensor, ScanOrder)| {
            Ok::<_, Fault>(input.shape()[crate::operator::axis(order.axis, input.rank())?])
        };
        let orders = operation.inputs.iter().map(|input| input.order);
        let lengths = inputs.iter().zip(orders).map(length).collect::<Result<Vec<_>, Fault>>()?;
        let steps = lengths.first().copied().unwrap_or(0);
        if lengths.iter().any(|&length| length != steps) {
            return Err(Fault(format!("inputs have different numbers of slices: {lengths:?}")).into());
        }
        let mut slices: Vec<Vec<HostTensor>> = vec![Vec::new(); operation.outputs.len()];
        for step in 0..steps {
            self.interpreter.check_interruption()?;
            let cut = operation.inputs.iter().zip(&inputs).map(|(input, tensor)| {
                let place = if input.order.reverse { steps - 1 - step } else { step };
                Ok::<_, Fault>(
                    slice_at(tensor, crate::operator::axis(input.order.axis, tensor.rank())?, place)?.into(),
                )
            });
            let cut = cut.collect::<Result<Vec<Value>, Fault>>()?;
            for (&parameter, argument) in operation.body.parameters.iter().zip(states.into_iter().chain(cut))
            {
                self.values[parameter.index()] = Some(argument);
            }
            let mut results = self.run_inner(&operation.body)?.into_iter();
            states = results.by_ref().take(operation.states.len()).collect();
            for (slices, slice) in slices.iter_mut().zip(results) {
                slices.push(tensor(slice)?);
            }
        }
        for (slices, &order) in slices.into_iter().zip(&operation.outputs) {
            states.push(stack(slices, order)?);
        }
        Ok(states)
    }
}
