//! Shapes of inputs as the command line names them, and inputs of these shapes with made-up elements.

use std::collections::BTreeMap;
use std::str::FromStr;

use tilewright_session::{Bucket, HostTensor, Port, SymInt, sizes, stand_in};

use crate::Failure;

/// The most combinations of sizes.
const MOST_COMBINATIONS: usize = 64;

/// Shapes of one input: `x=1..32x128`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shapes {
    name: String,
    extents: Vec<Vec<usize>>,
}

impl FromStr for Shapes {
    type Err = String;

    /// Names may hold `=`; shapes may not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, shape) = text.rsplit_once('=').ok_or("expected NAME=SHAPE, for instance x=1..32x128")?;
        let extents = shape.split('x').filter(|part| !part.is_empty()).map(sizes);
        Ok(Shapes { name: name.to_owned(), extents: extents.collect::<Result<_, _>>()? })
    }
}

/// Inputs for every combination of sizes. An extent that the model names is the same everywhere in one combination. Inputs in
/// `given` are taken as they are.
pub(super) fn combinations(
    ports: &[Port],
    shapes: &[Shapes],
    buckets: &[Bucket],
    given: &[(String, HostTensor)],
) -> Result<Vec<Vec<(String, HostTensor)>>, Failure> {
    for Shapes { name, .. } in shapes {
        if ports.iter().all(|port| port.name != *name) {
            return Err(Failure::new(format!("the model has no input `{name}`, whose shape is given")));
        }
    }
    // The sizes of what varies by itself: a name of the model, or one dimension of one input.
    let mut varying: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut places: Vec<(&Port, Vec<String>)> = Vec::new();
    for port in ports.iter().filter(|port| given.iter().all(|(name, _)| *name != port.name)) {
        let found = shapes.iter().find(|shapes| shapes.name == port.name);
        let declared = port.ty.extents();
        let extents = match (found, declared) {
            (Some(shapes), Some(declared)) if declared.len() != shapes.extents.len() => {
                let reason = format!(
                    "input `{}` is {}: {} extents are given",
                    port.name,
                    port.ty,
                    shapes.extents.len()
                );
                return Err(Failure::new(reason));
            }
            (Some(shapes), _) => shapes.extents.clone(),
            (None, Some(declared)) => by_name(port, declared, buckets)?,
            (None, None) => return Err(missing(port)),
        };
        let mut keys = Vec::new();
        for (place, sizes) in extents.into_iter().enumerate() {
            let symbol = declared.and_then(|declared| declared[place].as_symbol());
            let key =
                symbol.map_or_else(|| format!("{}[{place}]", port.name), |symbol| symbol.name().to_owned());
            let known = varying.entry(key.clone()).or_insert_with(|| sizes.clone());
            if *known != sizes {
                return Err(Failure::new(format!("{key} has different sizes: {known:?} and {sizes:?}")));
            }
            keys.push(key);
        }
        places.push((port, keys));
    }
    let count = varying.values().try_fold(1usize, |count, sizes| count.checked_mul(sizes.len()));
    if count.is_none_or(|count| count > MOST_COMBINATIONS) {
        return Err(Failure::new(format!("there are more than {MOST_COMBINATIONS} combinations of sizes")));
    }
    let mut all: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new()];
    for (key, sizes) in &varying {
        let mut longer = Vec::new();
        for known in &all {
            for &size in sizes {
                let mut known = known.clone();
                known.insert(key, size);
                longer.push(known);
            }
        }
        all = longer;
    }
    all.iter()
        .map(|sizes| {
            let mut inputs = given.to_vec();
            for (port, keys) in &places {
                let shape: Vec<usize> = keys.iter().map(|key| sizes[&key[..]]).collect();
                inputs.push((port.name.clone(), stand_in(port, &shape).map_err(Failure::new)?));
            }
            Ok(inputs)
        })
        .collect()
}

/// The extents of an input whose shape is not given: numbers, and names with buckets.
fn by_name(port: &Port, declared: &[SymInt], buckets: &[Bucket]) -> Result<Vec<Vec<usize>>, Failure> {
    let extent = |extent: &SymInt| {
        if let Some(name) = extent.as_symbol() {
            let bucket = buckets.iter().find(|bucket| bucket.name == name.name());
            return bucket.map(|bucket| bucket.bounds.clone()).ok_or_else(|| missing(port));
        }
        let extent = extent.as_constant().and_then(|extent| usize::try_from(extent).ok());
        extent.map(|extent| vec![extent]).ok_or_else(|| missing(port))
    };
    declared.iter().map(extent).collect()
}

fn missing(port: &Port) -> Failure {
    let Port { name, ty } = port;
    let named = port.ty.extents().into_iter().flatten().find_map(SymInt::as_symbol);
    let bucket = named.map_or_else(String::new, |symbol| format!("`--bucket {}=…`, ", symbol.name()));
    Failure::new(format!(
        "input `{name}` is {ty}: give {bucket}`--shape {name}=…` or `--input {name}=FILE.npy`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let read = |text: &str| text.parse::<Shapes>();
        let shapes = read("a=b=1..6x8x3..3").unwrap();
        assert_eq!(shapes.name, "a=b");
        assert_eq!(shapes.extents, [vec![1, 2, 4, 6], vec![8], vec![3]]);
        for wrong in ["x", "x=0", "x=4..2", "x=1x-1", "x=1..", "x=ax2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_the_model_vary_together() {
        use tilewright_session::{ElementType, Shape, Type};
        let port = |name: &str, element, extents: &[SymInt]| Port {
            name: name.to_owned(),
            ty: Type::tensor(element, Shape::Known(extents.to_vec())),
        };
        let (n, s) = (SymInt::symbol("N"), SymInt::symbol("S"));
        let ports = [
            port("ids", ElementType::I64, &[n.clone(), s.clone()]),
            port("mask", ElementType::I64, &[n, s]),
            port("scale", ElementType::F32, &[2.into()]),
        ];
        let shapes = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Shapes>>();
        let both = shapes(&["ids=1..2x16", "mask=1..2x16"]);
        let all = combinations(&ports, &both, &[], &[]).unwrap();
        let found: Vec<Vec<&[usize]>> =
            all.iter().map(|inputs| inputs.iter().map(|(_, tensor)| tensor.shape()).collect()).collect();
        assert_eq!(found, [[&[1, 16][..], &[1, 16], &[2]], [&[2, 16][..], &[2, 16], &[2]]]);
        assert_eq!(all[0][0].1.as_slice::<i64>(), Some(&[1i64; 16][..]));
        let buckets = ["N=1,2", "S=16"].map(|text| text.parse().unwrap());
        let by_name = combinations(&ports, &[], &buckets, &[]).unwrap();
        let shapes_of = |all: &[Vec<(String, HostTensor)>]| -> Vec<Vec<Vec<usize>>> {
            all.iter()
                .map(|inputs| inputs.iter().map(|(_, tensor)| tensor.shape().to_vec()).collect())
                .collect()
        };
        assert_eq!(shapes_of(&by_name), shapes_of(&all));
        assert!(combinations(&ports, &[], &buckets[..1], &[]).is_err(), "`S` has no bucket");
        for wrong in [&["ids=1..2x16"][..], &["ids=1x2", "mask=1x3"], &["ids=1", "mask=1x2"], &["other=1"]] {
            assert!(combinations(&ports, &shapes(wrong), &[], &[]).is_err(), "{wrong:?}");
        }
    }
}
