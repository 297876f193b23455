//! Sums of products in Einstein's notation.

use std::collections::{BTreeMap, BTreeSet};

use crate::deduce;
use crate::operator::attribute::TextOr;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, Number, Places, Wide, count, row_major_strides, with_number};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("einsum", "Einsum", einsum)
    .legalise(crate::legalise::einsum::einsum)
    .result_order(ResultOrder::Rows)
    .deduce(deduce::einsum)
    .inputs(1, usize::MAX)
    .attributes(&[("equation", TextOr(""))])];

/// The label of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// A dimension of the ellipsis, counted from the last.
    Ellipsis(usize),
    Letter(char),
}

/// A term of an equation: letters, and where three dots stand.
struct Term {
    before: Vec<char>,
    ellipsis: bool,
    after: Vec<char>,
}

impl Term {
    fn parse(text: &str) -> Result<Self, Fault> {
        let letters = |text: &str| match text.chars().find(|c| !c.is_ascii_alphabetic()) {
            None => Ok(text.chars().collect()),
            Some(c) => refuse!("the equation holds `{c}`, which is no letter"),
        };
        Ok(match text.split_once("...") {
            None => Term { before: letters(text)?, ellipsis: false, after: Vec::new() },
            Some((before, after)) => {
                Term { before: letters(before)?, ellipsis: true, after: letters(after)? }
            }
        })
    }

    /// A label for each dimension of a tensor of rank `rank`.
    fn labels(&self, rank: usize) -> Result<Vec<Label>, Fault> {
        let hidden = match rank.checked_sub(self.before.len() + self.after.len()) {
            Some(hidden) if hidden == 0 || self.ellipsis => hidden,
            _ => refuse!("a term of the equation does not fit a tensor of rank {rank}"),
        };
        let letter = |&letter: &char| Label::Letter(letter);
        let ellipsis = (0..hidden).rev().map(Label::Ellipsis);
        Ok(self.before.iter().map(letter).chain(ellipsis).chain(self.after.iter().map(letter)).collect())
    }
}

/// The labels of a sum of products: those of each input's dimensions, and those of the result's.
pub(crate) struct Contraction {
    pub(crate) inputs: Vec<Vec<Label>>,
    pub(crate) kept: Vec<Label>,
}

impl Contraction {
    /// Reads an equation for inputs of some ranks.
    pub(crate) fn parse(equation: &str, ranks: &[usize]) -> Result<Self, Fault> {
        let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&equation[..], None),
        };
        let terms = left.split(',').map(Term::parse).collect::<Result<Vec<_>, _>>()?;
        if terms.len() != ranks.len() {
            refuse!("the equation has {} terms for {} inputs", terms.len(), ranks.len());
        }
        let inputs =
            terms.iter().zip(ranks).map(|(term, &rank)| term.labels(rank)).collect::<Result<Vec<_>, _>>()?;
        let used: BTreeSet<Label> = inputs.iter().flatten().copied().collect();
        let hidden = used.iter().filter(|label| matches!(label, Label::Ellipsis(_))).count();
        let kept = match right {
            Some(right) => {
                let term = Term::parse(right)?;
                let shown = if term.ellipsis { hidden } else { 0 };
                term.labels(term.before.len() + term.after.len() + shown)?
            }
            None => implicit(&inputs, hidden),
        };
        if let Some(unknown) = kept.iter().find(|label| !used.contains(label)) {
            refuse!("the result names {unknown:?}, which no input has");
        }
        Ok(Contraction { inputs, kept })
    }

    /// The labels that are summed over, in order.
    pub(crate) fn summed(&self) -> Vec<Label> {
        let used: BTreeSet<Label> = self.inputs.iter().flatten().copied().collect();
        used.into_iter().filter(|label| !self.kept.contains(label)).collect()
    }
}

fn einsum(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let inputs = arguments.tensors()?;
    let ranks: Vec<usize> = inputs.iter().map(|input| input.rank()).collect();
    let contraction = Contraction::parse(arguments.text("equation"), &ranks)?;
    let extents = extents(&contraction.inputs, &inputs)?;
    let summed = contraction.summed();
    let Contraction { inputs: labels, kept } = contraction;
    with_number!(inputs[0].element(), T => contract::<T>(&inputs, &labels, &extents, &kept, &summed),
        else refuse!("expected numbers, found {}", inputs[0].element()))
}

/// Without an arrow: the ellipsis, then all letters that occur once, in order.
fn implicit(labels: &[Vec<Label>], hidden: usize) -> Vec<Label> {
    let mut occurrences: BTreeMap<Label, usize> = BTreeMap::new();
    labels.iter().flatten().for_each(|&label| *occurrences.entry(label).or_default() += 1);
    let once =
        occurrences.into_iter().filter(|(label, times)| matches!(label, Label::Letter(_)) && *times == 1);
    (0..hidden).rev().map(Label::Ellipsis).chain(once.map(|(label, _)| label)).collect()
}

/// The extent of each label; those of an extent of 1 broadcast.
fn extents(labels: &[Vec<Label>], inputs: &[&HostTensor]) -> Result<BTreeMap<Label, usize>, Fault> {
    let mut extents = BTreeMap::new();
    for (labels, input) in labels.iter().zip(inputs) {
        for (&label, &extent) in labels.iter().zip(input.shape()) {
            let known = extents.entry(label).or_insert(extent);
            if *known == 1 {
                *known = extent;
            } else if extent != 1 && extent != *known {
                refuse!("{label:?} has extents {known} and {extent}");
            }
        }
    }
    Ok(extents)
}

fn contract<T: Number>(
    inputs: &[&HostTensor],
    labels: &[Vec<Label>],
    extents: &BTreeMap<Label, usize>,
    kept: &[Label],
    summed: &[Label],
) -> Result<Vec<Value>, Fault> {
    let shape = |labels: &[Label]| labels.iter().map(|label| extents[label]).collect::<Vec<usize>>();
    let elements = inputs.iter().map(|input| input.expect::<T>()).collect::<Result<Vec<_>, _>>()?;
    // A label that a term repeats moves along the diagonal: its strides add up.
    let strides = |order: &[Label]| -> Vec<Vec<usize>> {
        let of_input = |(input, own): (&&HostTensor, &Vec<Label>)| {
            let strides = row_major_strides(input.shape());
            let stride = |label: &Label| {
                let same = own
                    .iter()
                    .enumerate()
                    .filter(|(dimension, other)| *other == label && input.shape()[*dimension] > 1);
                same.map(|(dimension, _)| strides[dimension]).sum()
            };
            order.iter().map(stride).collect()
        };
        inputs.iter().zip(labels).map(of_input).collect()
    };
    let offsets = |order: &[Label]| -> Vec<Vec<usize>> {
        strides(order).into_iter().map(|strides| Places::new(&shape(order), strides).collect()).collect()
    };
    let (outer, inner) = (offsets(kept), offsets(summed));
    let (results, terms) = (count(&shape(kept))?, count(&shape(summed))?);
    let product = |result: usize, term: usize| {
        let factor = |input: usize| elements[input][outer[input][result] + inner[input][term]].widen();
        (0..inputs.len()).map(factor).fold(<T as Number>::Wide::unit(), Wide::times)
    };
    let sum = |result| {
        T::narrow(
            (0..terms).fold(<T as Number>::Wide::default(), |sum, term| sum.plus(product(result, term))),
        )
    };
    one(HostTensor::new(&shape(kept), (0..results).map(sum).collect())?)
}
