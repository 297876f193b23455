//! Padding.

use crate::deduce;
use crate::legalise::select;
use crate::operator::attribute::TextOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::select::choose;
use crate::operator::{Arguments, Fault, Operator, Value};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("pad", "Pad", pad)
    .legalise(select::pad)
    .deduce(deduce::pad)
    .inputs(2, 4)
    .attributes(&[("mode", TextOr("constant"))])];

fn pad(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let pads = arguments.integers(1)?;
    let axes = arguments.optional_integers(3)?.unwrap_or_else(|| (0..x.rank() as i64).collect());
    if pads.len() != 2 * axes.len() {
        refuse!("pads {pads:?} must have two numbers for each of {} dimensions", axes.len());
    }
    let mut around = vec![(0, 0); x.rank()];
    for (place, &number) in axes.iter().enumerate() {
        around[axis(number, x.rank())?] = (pads[place], pads[place + axes.len()]);
    }
    let mode = arguments.text("mode");
    let tables =
        x.shape().iter().zip(around).map(|(&extent, (before, after))| table(mode, extent, before, after));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let extents: Vec<usize> = tables.iter().map(Vec::len).collect();
    crate::tensor::count(&extents)?;
    one(choose(x, &tables, arguments.optional(2)?)?)
}

/// How many places padding may add to a dimension: beyond it, a hostile number would fill the memory.
const MOST: i64 = 1 << 31;

/// Where the elements of one padded dimension come from. Negative padding removes places.
fn table(mode: &str, extent: usize, before: i64, after: i64) -> Result<Vec<Option<usize>>, Fault> {
    let signed = extent as i64;
    if before.max(after) > MOST {
        refuse!("padding by {} places is too much", before.max(after));
    }
    if extent == 0 && before.max(after) > 0 && mode != "constant" {
        refuse!("an empty dimension can be padded with constants only");
    }
    let source = |place: i64| match mode {
        "constant" => Ok((0..signed).contains(&place).then_some(place)),
        "edge" => Ok(Some(place.clamp(0, signed - 1))),
        "wrap" => Ok(Some(place.rem_euclid(signed))),
        "reflect" if signed == 1 => Ok(Some(0)),
        "reflect" => {
            let within = place.rem_euclid(2 * (signed - 1));
            Ok(Some(within.min(2 * (signed - 1) - within)))
        }
        other => refuse!("attribute mode must be constant, edge, reflect or wrap, not {other}"),
    };
    let places = before.saturating_neg()..signed.saturating_add(after);
    places.map(|place| Ok(source(place)?.map(|place| place as usize))).collect()
}
