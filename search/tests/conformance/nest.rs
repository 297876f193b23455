//! Loops and blocks in a form that two compilers can have in common.
//!
//! Left out are loops of one iteration and iterators with one point: a block that is moved gets no loop for such an iterator
//! here, and one in MetaSchedule. Blocks go by what MetaSchedule calls them.

use std::fmt;

use tilewright_core::annotation::TILING;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, IterKind, Stmt};
use tilewright_core::visit::for_each_stmt;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nest {
    /// Loops inside each other, outermost first, and what is in the innermost.
    Loops(Vec<Loop>, Vec<Nest>),
    /// A block: its name, how many iterators it has of each kind with more than one point, whether it sets an initial value, and how it is tiled.
    Block { name: String, spatial: usize, reduce: usize, has_init: bool, tiling: Option<String> },
}

/// A loop: its extent, and whether it counts points of a reduction alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    extent: i64,
    reduces: bool,
}

impl Nest {
    /// Reads the lines of a data file: what is inside is indented by two more spaces.
    pub(crate) fn read(text: &str) -> Vec<Nest> {
        let lines: Vec<(usize, &str)> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| ((line.len() - line.trim_start().len()) / 2, line.trim()))
            .collect();
        read_lines(&lines)
    }

    /// The statements of a program.
    pub(crate) fn of(program: &Program) -> Vec<Nest> {
        let mut nests = Vec::new();
        collect(&program.body, &mut nests);
        nests
    }
}

fn read_lines(lines: &[(usize, &str)]) -> Vec<Nest> {
    let mut nests = Vec::new();
    let mut rest = lines;
    while let Some((&(depth, line), after)) = rest.split_first() {
        let end = after.iter().position(|(other, _)| *other <= depth).unwrap_or(after.len());
        let (inside, next) = after.split_at(end);
        match line.split_once(' ').expect("a word and more") {
            ("for", loops) => {
                push_loops(loops.split(' ').map(Loop::read).collect(), read_lines(inside), &mut nests)
            }
            ("block", words) => nests.push(read_block(words)),
            (word, _) => panic!("`{word}` is neither `for` nor `block`"),
        }
        rest = next;
    }
    nests
}

fn read_block(words: &str) -> Nest {
    let mut words = words.split(' ');
    let name = words.next().expect("a name").to_owned();
    let kinds = words.next().expect("kinds of iterators");
    let mut rest = words.peekable();
    let has_init = rest.next_if_eq(&"init").is_some();
    let of = |kind| kinds.chars().filter(|other| *other == kind).count();
    Nest::Block { name, spatial: of('S'), reduce: of('R'), has_init, tiling: rest.next().map(str::to_owned) }
}

impl Loop {
    fn read(text: &str) -> Loop {
        let digits = text.strip_suffix('r');
        let extent = digits.unwrap_or(text).parse().unwrap_or_else(|error| panic!("`{text}`: {error}"));
        Loop { extent, reduces: digits.is_some() }
    }
}

/// Adds loops without those of one iteration, as one chain with loops that are alone in them.
fn push_loops(mut loops: Vec<Loop>, mut inside: Vec<Nest>, nests: &mut Vec<Nest>) {
    loops.retain(|node| node.extent != 1);
    if let [Nest::Loops(more, _)] = &inside[..] {
        loops.extend(more);
        let Some(Nest::Loops(_, innermost)) = inside.pop() else { unreachable!("it was just seen") };
        inside = innermost;
    }
    if loops.is_empty() { nests.extend(inside) } else { nests.push(Nest::Loops(loops, inside)) }
}

fn collect(stmt: &Stmt, nests: &mut Vec<Nest>) {
    match stmt {
        Stmt::Seq(parts) => parts.iter().for_each(|part| collect(part, nests)),
        Stmt::For(node) => {
            let mut inside = Vec::new();
            collect(&node.body, &mut inside);
            let mut kinds = Vec::new();
            for_each_stmt(&node.body, &mut |stmt| {
                if let Stmt::Block(block) = stmt {
                    let counted = block.iters.iter().filter(|iter| iter.binding.mentions(node.var));
                    kinds.extend(counted.map(|iter| iter.kind));
                }
            });
            let reduces = !kinds.is_empty() && kinds.iter().all(|kind| *kind == IterKind::Reduce);
            let extent = node.extent.as_constant().expect("the shapes are known");
            push_loops(vec![Loop { extent, reduces }], inside, nests);
        }
        Stmt::Block(block) => nests.push(of_block(block)),
        other => panic!("no statement of a schedulable program: {other:?}"),
    }
}

fn of_block(block: &Block) -> Nest {
    let of = |kind| block.iters.iter().filter(|iter| iter.kind == kind && !iter.extent.is(1)).count();
    Nest::Block {
        name: published_name(&block.name),
        spatial: of(IterKind::Spatial),
        reduce: of(IterKind::Reduce),
        has_init: block.init.is_some(),
        tiling: TILING.get(&block.annotations).map(|levels| levels.to_string()),
    }
}

/// MetaSchedule's name of a block.
fn published_name(name: &str) -> String {
    let suffixes = [("_copy", "_global"), ("_partial", "_rf")];
    let renamed =
        suffixes.iter().find_map(|(own, other)| Some(format!("{}{other}", name.strip_suffix(own)?)));
    renamed.unwrap_or_else(|| name.to_owned())
}

impl fmt::Display for Nest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write(nest: &Nest, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{:1$}", "", 2 * depth)?;
            match nest {
                Nest::Block { name, spatial, reduce, has_init, tiling } => {
                    let kinds = format!("{}{}", "S".repeat(*spatial), "R".repeat(*reduce));
                    let init = if *has_init { " init" } else { "" };
                    let tiling = tiling.as_ref().map(|tiling| format!(" {tiling}")).unwrap_or_default();
                    writeln!(f, "block {name} {kinds}{init}{tiling}")
                }
                Nest::Loops(loops, inside) => {
                    write!(f, "for")?;
                    for node in loops {
                        write!(f, " {}{}", node.extent, if node.reduces { "r" } else { "" })?;
                    }
                    writeln!(f)?;
                    inside.iter().try_for_each(|nest| write(nest, depth + 1, f))
                }
            }
        }
        write(self, 0, f)
    }
}
