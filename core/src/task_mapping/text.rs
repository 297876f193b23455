//! The text form: `repeat(2, 1) * spatial(4, 8, ranks=[1, 0])`.

use std::fmt;
use std::str::FromStr;

use super::{Distribution, Elementary, TaskMapping, TaskMappingError};

impl fmt::Display for Elementary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.distribution {
            Distribution::Spatial => "spatial",
            Distribution::Repeat => "repeat",
        };
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        write!(f, "{name}({}", shape.join(", "))?;
        if !self.ranks.iter().copied().eq(0..self.ranks.len()) {
            write!(f, ", ranks={:?}", self.ranks)?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for TaskMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts().iter().map(ToString::to_string).collect();
        f.write_str(&parts.join(" * "))
    }
}

impl FromStr for TaskMapping {
    type Err = TaskMappingError;

    fn from_str(text: &str) -> Result<Self, TaskMappingError> {
        let mut parts = text.split('*').map(|part| part.trim().parse::<Elementary>().map(TaskMapping::from));
        let first = parts.next().unwrap_or_else(|| Err(wrong(text, "a mapping")))?;
        parts.try_fold(first, |outer, inner| outer.compose(&inner?))
    }
}

impl FromStr for Elementary {
    type Err = TaskMappingError;

    fn from_str(text: &str) -> Result<Self, TaskMappingError> {
        let (name, rest) = text.split_once('(').ok_or_else(|| wrong(text, "`spatial(…)` or `repeat(…)`"))?;
        let distribution = match name.trim() {
            "spatial" => Distribution::Spatial,
            "repeat" => Distribution::Repeat,
            _ => return Err(wrong(name, "`spatial` or `repeat`")),
        };
        let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| wrong(text, "a closing parenthesis"))?;
        let (shape, ranks) = match inside.split_once("ranks") {
            None => (inside, None),
            Some((shape, ranks)) => {
                let list = ranks.trim().strip_prefix('=').map(str::trim);
                let list = list.and_then(|list| list.strip_prefix('[')?.strip_suffix(']'));
                let list = list.ok_or_else(|| wrong(ranks, "`ranks=[1, 0]` at the end"))?;
                let shape = shape.trim_end().strip_suffix(',');
                (shape.ok_or_else(|| wrong(text, "a comma before `ranks`"))?, Some(list))
            }
        };
        let shape: Vec<i64> = numbers(shape)?;
        let ranks = ranks.map_or_else(|| Ok((0..shape.len()).collect()), numbers)?;
        Elementary::new(distribution, &shape, &ranks)
    }
}

fn numbers<T: FromStr>(text: &str) -> Result<Vec<T>, TaskMappingError> {
    text.split(',').map(|number| number.trim().parse().map_err(|_| wrong(number, "a number"))).collect()
}

fn wrong(text: &str, expected: &'static str) -> TaskMappingError {
    TaskMappingError::Text { text: text.trim().to_owned(), expected }
}
