//! Constant expressions.

use crate::parse::cursor::Cursor;
use crate::parse::error::ParseError;
use crate::parse::lexer::Token;
use crate::program::Literal;

/// How deeply parentheses and signs may nest.
const DEEPEST: u32 = 64;

/// Reads a constant: a number with its sign, or an expression of integers.
pub(crate) fn constant(cursor: &mut Cursor<'_>) -> Result<Literal, ParseError> {
    binary(cursor, 0, DEEPEST)
}

/// Reads a constant integer.
pub(crate) fn integer(cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
    match constant(cursor)? {
        Literal::Integer(value) => Ok(value),
        _ => cursor.error("an integer is wanted, but this constant is a floating-point number"),
    }
}

/// Operators with their precedence, loosest first.
fn operator(cursor: &Cursor<'_>) -> Option<(u8, usize, &'static str)> {
    let Token::Mark(mark) = cursor.peek() else { return None };
    let twice = cursor.ahead(1) == Token::Mark(mark);
    Some(match mark {
        b'|' if !twice => (1, 1, "|"),
        b'^' => (2, 1, "^"),
        b'&' if !twice => (3, 1, "&"),
        b'<' if twice => (4, 2, "<<"),
        b'>' if twice => (4, 2, ">>"),
        b'+' => (5, 1, "+"),
        b'-' => (5, 1, "-"),
        b'*' => (6, 1, "*"),
        b'/' => (6, 1, "/"),
        b'%' => (6, 1, "%"),
        _ => return None,
    })
}

fn binary(cursor: &mut Cursor<'_>, loosest: u8, depth: u32) -> Result<Literal, ParseError> {
    let mut left = unary(cursor, depth)?;
    while let Some((precedence, marks, name)) = operator(cursor) {
        if precedence <= loosest {
            break;
        }
        let Literal::Integer(a) = left else {
            return cursor.error("constant expressions are of integers");
        };
        for _ in 0..marks {
            cursor.next();
        }
        let Literal::Integer(b) = binary(cursor, precedence, depth)? else {
            return cursor.error("constant expressions are of integers");
        };
        left = Literal::Integer(apply(cursor, name, a, b)?);
    }
    Ok(left)
}

fn apply(cursor: &Cursor<'_>, name: &str, a: u64, b: u64) -> Result<u64, ParseError> {
    Ok(match name {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<<" => a.checked_shl(b.min(64) as u32).unwrap_or(0),
        ">>" => ((a as i64) >> b.min(63)) as u64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        _ if b == 0 => return cursor.error("a constant expression divides by zero"),
        "/" => (a as i64).wrapping_div(b as i64) as u64,
        _ => (a as i64).wrapping_rem(b as i64) as u64,
    })
}

fn unary(cursor: &mut Cursor<'_>, depth: u32) -> Result<Literal, ParseError> {
    if depth == 0 {
        return cursor.error(format!("an expression that nests deeper than {DEEPEST}"));
    }
    match cursor.peek() {
        Token::Mark(b'-') => {
            cursor.next();
            Ok(match unary(cursor, depth - 1)? {
                Literal::Integer(value) => Literal::Integer(value.wrapping_neg()),
                Literal::Single(bits) => Literal::Single(bits ^ 1 << 31),
                Literal::Double(bits) => Literal::Double(bits ^ 1 << 63),
            })
        }
        Token::Mark(b'+') => {
            cursor.next();
            unary(cursor, depth - 1)
        }
        Token::Mark(mark @ (b'~' | b'!')) => {
            cursor.next();
            match unary(cursor, depth - 1)? {
                Literal::Integer(value) if mark == b'~' => Ok(Literal::Integer(!value)),
                Literal::Integer(value) => Ok(Literal::Integer(u64::from(value == 0))),
                _ => cursor.error("constant expressions are of integers"),
            }
        }
        Token::Mark(b'(') => parenthesis(cursor, depth - 1),
        Token::Integer(value) => {
            cursor.next();
            Ok(Literal::Integer(value))
        }
        Token::Single(bits) => {
            cursor.next();
            Ok(Literal::Single(bits))
        }
        Token::Double(bits) => {
            cursor.next();
            Ok(Literal::Double(bits))
        }
        Token::Word("WARP_SZ") => {
            cursor.next();
            Ok(Literal::Integer(32))
        }
        _ => cursor.expected("a constant"),
    }
}

/// `(expression)`, or a cast: `(.s64) expression` and `(.u64) expression` change nothing.
fn parenthesis(cursor: &mut Cursor<'_>, depth: u32) -> Result<Literal, ParseError> {
    cursor.need(b'(')?;
    if let Token::Dotted("s64" | "u64") = cursor.peek() {
        cursor.next();
        cursor.need(b')')?;
        return unary(cursor, depth);
    }
    let value = binary(cursor, 0, depth)?;
    cursor.need(b')')?;
    Ok(value)
}
