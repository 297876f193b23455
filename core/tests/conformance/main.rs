//! Cases of TVM's tests of its detection of iterator maps, compared with ours. `README.md` in this folder says where the data is
//! from.

mod refusals;
mod sampling;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use text::{Comparison, Text};
use tilewright_core::ids::VarId;
use tilewright_core::index::iter_map::{IterMap, IterMapError, MapLevel, detect};
use tilewright_core::index::{Index, Ranges};

/// A question, and TVM's answer.
struct Case<'t> {
    name: &'t str,
    level: MapLevel,
    /// The iterators with their extents.
    domain: Vec<(&'t str, &'t str)>,
    /// Comparisons that hold for all points.
    conditions: Vec<&'t str>,
    indices: Vec<&'t str>,
    /// For each index its extent, least value and step; nothing where they are no map.
    answer: Option<Vec<[&'t str; 3]>>,
}

/// Our answer, as far as it can differ.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The same as TVM.
    Same,
    /// A map where TVM sees none.
    Understood,
    /// No map where TVM sees one.
    Refused,
    /// Another map.
    Other,
}

impl<'t> Case<'t> {
    fn read(text: &'t str) -> Self {
        let mut lines = text.lines();
        let header = lines.next().and_then(|line| line.strip_prefix("case ")).expect("`case`");
        let (name, level) = header.rsplit_once(' ').expect("a level");
        let level = match level {
            "surjective" => MapLevel::Surjective,
            "bijective" => MapLevel::Bijective,
            other => panic!("`{other}` is no level"),
        };
        let mut case =
            Case { name, level, domain: vec![], conditions: vec![], indices: vec![], answer: Some(vec![]) };
        for line in lines {
            let (word, rest) = line.split_once(' ').expect("a word and more");
            match word {
                "over" => {
                    let one = |text: &'t str| text.split_once(' ').expect("a name and an extent");
                    case.domain = rest.split(", ").map(one).collect();
                }
                "where" => case.conditions.push(rest),
                "none" => {
                    case.indices.push(rest);
                    case.answer = None;
                }
                "to" => {
                    let (index, values) = rest.split_once(": ").expect("an index and its values");
                    let (extent, values) = values.split_once(" from ").expect("an extent");
                    let (min, step) = values.split_once(" by ").expect("a least value and a step");
                    case.indices.push(index);
                    case.answer.as_mut().expect("some index has no values").push([extent, min, step]);
                }
                other => panic!("`{other}` is no word of the format"),
            }
        }
        case
    }

    /// The names that occur, iterators first.
    fn names(&self) -> Vec<&'t str> {
        let mut names: Vec<&str> = self.domain.iter().map(|(name, _)| *name).collect();
        let answers = self.answer.iter().flatten().flatten();
        let texts = self.domain.iter().map(|(_, extent)| extent);
        let texts = texts.chain(&self.conditions).chain(&self.indices).chain(answers);
        let others: BTreeSet<&str> = texts
            .flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()))
            .filter(|word| word.starts_with(char::is_alphabetic) && !names.contains(word))
            .collect();
        names.extend(others);
        names
    }

    /// Our answer.
    fn answer(&self) -> Result<IterMap, IterMapError> {
        let names = self.names();
        let index = |text: &str| Text::read(text, &names).index();
        let indices: Vec<Index> = self.indices.iter().map(|text| index(text)).collect();
        let guards: Vec<_> =
            self.conditions.iter().map(|text| Comparison::read(text, &names).guard()).collect();
        let extents = self.domain.iter().map(|(_, extent)| index(extent));
        let domain: Vec<(VarId, Index)> = (0..).map(VarId).zip(extents).collect();
        detect(&indices, &domain, &guards, self.level)
    }

    /// How an answer of ours differs from TVM's.
    fn compare(&self, ours: &Result<IterMap, IterMapError>) -> Outcome {
        let names = self.names();
        match (ours, &self.answer) {
            (Err(_), None) => Outcome::Same,
            (Err(_), Some(_)) => Outcome::Refused,
            (Ok(_), None) => Outcome::Understood,
            (Ok(found), Some(answer)) => {
                let is_same = found.outputs.iter().zip(answer).all(|(sum, values)| {
                    let wanted = values.map(|text| Text::read(text, &names).index());
                    [&sum.extent, &sum.min, &sum.scale].into_iter().eq(&wanted)
                });
                if is_same { Outcome::Same } else { Outcome::Other }
            }
        }
    }

    /// Whether the indices take exactly the values that we claim, and each once where we claim that, for some sizes of
    /// the dimensions: by running through the domain.
    fn check(&self, found: &IterMap) {
        let names = self.names();
        let dims = self.domain.len()..names.len();
        for size in 2..6 {
            let sizes: Vec<i64> = dims.clone().map(|name| size + (name - dims.start) as i64).collect();
            self.check_at(found, &names, &sizes);
            if dims.is_empty() {
                break;
            }
        }
    }

    fn check_at(&self, found: &IterMap, names: &[&str], sizes: &[i64]) {
        let read = |text: &&str| Text::read(text, names);
        let indices: Vec<Text> = self.indices.iter().map(read).collect();
        let conditions: Vec<_> = self.conditions.iter().map(|text| Comparison::read(text, names)).collect();
        let mut point = vec![0; self.domain.len()];
        point.extend(sizes);
        let extents: Vec<i64> =
            self.domain.iter().map(|(_, extent)| read(extent).value(&point).expect("an extent")).collect();
        let (mut points, mut images) = (0, BTreeSet::new());
        for number in 0..extents.iter().product() {
            let mut rest: i64 = number;
            for (value, extent) in point.iter_mut().zip(&extents).rev() {
                *value = rest % extent;
                rest /= extent;
            }
            if conditions.iter().all(|condition| condition.holds(&point)) {
                let image: Option<Vec<i64>> = indices.iter().map(|index| index.value(&point)).collect();
                points += 1;
                images.insert(image.expect("no division by zero"));
            }
        }
        let dims: Vec<Index> = point.iter().map(|size| Index::constant(*size)).collect();
        let value = |index: &Index| {
            let index = index.substitute(&|var| dims.get(var.0 as usize).cloned()).simplify(&Ranges::new());
            index.as_constant().unwrap_or_else(|| panic!("{}: {index:?}", self.name))
        };
        let mut size = 1;
        for (at, sum) in found.outputs.iter().enumerate() {
            let (extent, min, scale) = (value(&sum.extent), value(&sum.min), value(&sum.scale));
            let range: BTreeSet<i64> = (0..extent).map(|step| min + scale * step).collect();
            assert!(
                images.iter().all(|image| range.contains(&image[at])),
                "{} {sizes:?}: {sum:?}",
                self.name
            );
            size *= range.len();
        }
        assert_eq!(images.len(), size, "{} {sizes:?}", self.name);
        assert!(
            found.level == MapLevel::Surjective || points == size,
            "{} {sizes:?}: not each once",
            self.name
        );
    }
}

/// Where we answer otherwise: by the name of a case, what, and why.
fn differences() -> BTreeMap<&'static str, Outcome> {
    let lines = include_str!("iter_maps_differ.txt").lines().filter(|line| !line.is_empty());
    let read = |line: &'static str| {
        let (name, rest) = line.split_once(": ").expect("a name");
        let (what, reason) = rest.split_once(": ").expect("what we answer");
        assert!(!reason.is_empty(), "{line}");
        let outcome = match what {
            "understood" => Outcome::Understood,
            "refused" => Outcome::Refused,
            "another" => Outcome::Other,
            other => panic!("`{other}` is no answer"),
        };
        (name, outcome)
    };
    lines.map(read).collect()
}

#[test]
fn iterator_maps_are_those_of_tvm() {
    let mut differences = differences();
    let mut wrong = Vec::new();
    let cases: Vec<Case<'_>> = include_str!("iter_maps.txt").trim().split("\n\n").map(Case::read).collect();
    assert!(cases.len() >= 100, "{}", cases.len());
    for case in &cases {
        let ours = case.answer();
        if let Ok(found) = &ours {
            case.check(found);
        }
        let (found, expected) = (case.compare(&ours), differences.remove(case.name).unwrap_or(Outcome::Same));
        if found != expected {
            wrong.push(format!("{}: {found:?} instead of {expected:?}, {ours:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(differences.is_empty(), "no cases: {differences:?}");
}
