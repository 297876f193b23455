//! Indices and comparisons as the cases write them, read without the crate's own reader, so that they can be evaluated
//! without its indices.

use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::stmt::Guard;

/// An index: `/` and `%` round towards minus infinity.
pub(crate) enum Text {
    Number(i64),
    /// A variable, by its place among the names.
    Name(usize),
    Binary(char, Box<Text>, Box<Text>),
}

impl Text {
    pub(crate) fn read(text: &str, names: &[&str]) -> Self {
        let spaceless: String = text.chars().filter(|letter| *letter != ' ').collect();
        let (read, rest) = sum(&spaceless, names);
        assert!(rest.is_empty(), "`{rest}` of `{text}`");
        read
    }

    pub(crate) fn index(&self) -> Index {
        match self {
            Text::Number(number) => Index::constant(*number),
            Text::Name(name) => Index::var(VarId(*name as u32)),
            Text::Binary(operator, a, b) => {
                let (a, b) = (a.index(), b.index());
                match operator {
                    '+' => &a + &b,
                    '-' => &a - &b,
                    '*' => a.multiply(&b),
                    '/' => a.divide(&b),
                    _ => a.remainder(&b),
                }
            }
        }
    }

    /// Nothing when it divides by zero.
    pub(crate) fn value(&self, point: &[i64]) -> Option<i64> {
        match self {
            Text::Number(number) => Some(*number),
            Text::Name(name) => Some(point[*name]),
            Text::Binary(operator, a, b) => {
                let (a, b) = (a.value(point)?, b.value(point)?);
                match operator {
                    '+' => Some(a + b),
                    '-' => Some(a - b),
                    '*' => Some(a * b),
                    _ if b <= 0 => None,
                    '/' => Some(a.div_euclid(b)),
                    _ => Some(a.rem_euclid(b)),
                }
            }
        }
    }
}

fn sum<'t>(text: &'t str, names: &[&str]) -> (Text, &'t str) {
    chain(text, ['+', '-'].as_slice(), &|text| {
        chain(text, ['*', '/', '%'].as_slice(), &|text| atom(text, names))
    })
}

/// Operands with operators of one strength between them, from the left.
fn chain<'t>(
    text: &'t str,
    operators: &[char],
    operand: &dyn Fn(&'t str) -> (Text, &'t str),
) -> (Text, &'t str) {
    let (mut read, mut rest) = operand(text);
    while let Some(operator) = rest.chars().next().filter(|letter| operators.contains(letter)) {
        let (right, after) = operand(&rest[1..]);
        read = Text::Binary(operator, Box::new(read), Box::new(right));
        rest = after;
    }
    (read, rest)
}

fn atom<'t>(text: &'t str, names: &[&str]) -> (Text, &'t str) {
    if let Some(inner) = text.strip_prefix('(') {
        let (read, rest) = sum(inner, names);
        return (read, rest.strip_prefix(')').expect("a closing bracket"));
    }
    let sign = usize::from(text.starts_with('-'));
    let end =
        text[sign..].find(|letter: char| !letter.is_alphanumeric()).map_or(text.len(), |end| end + sign);
    let (word, rest) = text.split_at(end);
    let name =
        || names.iter().position(|name| *name == word).unwrap_or_else(|| panic!("`{word}` is no name"));
    (word.parse().map_or_else(|_| Text::Name(name()), Text::Number), rest)
}

/// `lower < upper`, whichever of `<`, `<=`, `>`, `>=` it was written with.
pub(crate) struct Comparison {
    lower: Text,
    upper: Text,
}

impl Comparison {
    pub(crate) fn read(text: &str, names: &[&str]) -> Self {
        let sign = text.split(' ').find(|word| ["<", "<=", ">", ">="].contains(word)).expect("a comparison");
        let (left, right) = text.split_once(&format!(" {sign} ")).expect("two sides");
        let (left, right) = (Text::read(left, names), Text::read(right, names));
        let (lower, upper) = if sign.starts_with('<') { (left, right) } else { (right, left) };
        let more = Text::Number(i64::from(sign.ends_with('=')));
        Comparison { lower, upper: Text::Binary('+', Box::new(upper), Box::new(more)) }
    }

    pub(crate) fn holds(&self, point: &[i64]) -> bool {
        self.lower.value(point) < self.upper.value(point)
    }

    pub(crate) fn guard(&self) -> Guard {
        let difference = &self.lower.index() - &self.upper.index();
        let constant = difference.constant_part();
        Guard { index: difference.offset(-constant), bound: Index::constant(-constant) }
    }
}
