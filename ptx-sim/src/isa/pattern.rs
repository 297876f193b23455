//! The notation of the instruction table: which modifiers and operands a form of an instruction has.
//!
//! *Modifiers* are slots in the order in which PTX writes them. A slot is `alternative|alternative|…`, with `name=` before it
//! where the choice matters, and `?` behind it where it may be left out. A flag's name is the flag itself: `ftz?`.
//! Words in capitals stand for sets: see [`set`].
//!
//! *Operands* are `>t` (a destination of the type in slot `t`, or of a type by its name), `<t` (a source: register, constant or
//! symbol), `>+t` and `<+t` (a register may also be wider), `>t*` and `<t*` (vectors where the form has a `vec` slot), `>2t` and `<2t` (twice as wide), `<!pred` (a predicate that may be
//! negated), `>p|q` (one or two predicates), `[]` (an address), `#` (an integer constant), `{}` (a vector in braces of any
//! length), `@` (a label), `()` (a list in parentheses), `~` (anything; its builder checks). A `?` behind one: it may be
//! missing.

use crate::isa::types::Type;

/// One slot of modifiers.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: &'static str,
    pub(crate) alternatives: Vec<&'static str>,
    pub(crate) optional: bool,
}

/// The type of an operand: that of a slot, or a fixed one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum TypeOf {
    Slot(&'static str),
    Wide(&'static str),
    AtLeast(&'static str),
    Fixed(Type),
}

/// The sort of an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Role {
    Destination(TypeOf),
    DestinationVector(TypeOf),
    Source(TypeOf),
    SourceVector(TypeOf),
    Predicate,
    PredicatePair,
    Address,
    Constant,
    Braces,
    Label,
    List,
    Any,
}

/// An operand of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandSpec {
    pub(crate) role: Role,
    pub(crate) optional: bool,
}

/// Sets of alternatives with a name.
fn set(name: &str) -> Option<&'static str> {
    Some(match name {
        "INT" => "u16|u32|u64|s16|s32|s64",
        "WORD" => "u32|s32",
        "BITS" => "b16|b32|b64",
        "MEM" => "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
        "ANY" => "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
        "RND" => "rn|rz|rm|rp",
        "SPACE" => "global|shared|shared::cta|local|const|param",
        "SEM" => "relaxed|acquire|release|acq_rel",
        "WHERE" => "global|shared|shared::cta",
        "SCOPE" => "cta|cluster|gpu|sys",
        "CACHE_LOAD" => "ca|cg|cs|lu|cv",
        "CACHE_STORE" => "wb|cg|cs|wt",
        "EVICT" => "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
        "EVICT2" => "L2::evict_normal|L2::evict_first|L2::evict_last|L2::cache_hint",
        "POLICY" => "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged",
        "POLICY2" => "L2::evict_first|L2::evict_unchanged",
        "PREFETCH" => "L2::64B|L2::128B|L2::256B",
        _ => return None,
    })
}

/// Reads the slots of a form's modifiers.
pub(crate) fn slots(spec: &'static str) -> Vec<Slot> {
    spec.split_whitespace().map(slot).collect()
}

fn slot(word: &'static str) -> Slot {
    let (word, optional) = match word.strip_suffix('?') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let (name, list) = word.split_once('=').unwrap_or((word, word));
    let mut alternatives = Vec::new();
    for alternative in list.split('|') {
        match set(alternative) {
            Some(set) => alternatives.extend(set.split('|')),
            None => alternatives.push(alternative),
        }
    }
    Slot { name, alternatives, optional }
}

/// Reads the operands of a form.
pub(crate) fn operands(spec: &'static str) -> Vec<OperandSpec> {
    spec.split_whitespace().map(operand).collect()
}

fn operand(word: &'static str) -> OperandSpec {
    let (word, optional) = match word.strip_suffix('?') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let role = match word {
        ">p|q" => Role::PredicatePair,
        "<!pred" => Role::Predicate,
        "[]" => Role::Address,
        "#" => Role::Constant,
        "{}" => Role::Braces,
        "@" => Role::Label,
        "()" => Role::List,
        "~" => Role::Any,
        _ => {
            let (head, ty) = word.split_at(1);
            let (ty, vector) = match ty.strip_suffix('*') {
                Some(rest) => (rest, true),
                None => (ty, false),
            };
            match (head, vector) {
                (">", false) => Role::Destination(type_of(ty)),
                (">", true) => Role::DestinationVector(type_of(ty)),
                ("<", false) => Role::Source(type_of(ty)),
                ("<", true) => Role::SourceVector(type_of(ty)),
                _ => panic!("`{word}` is no operand of the instruction table"),
            }
        }
    };
    OperandSpec { role, optional }
}

fn type_of(word: &'static str) -> TypeOf {
    if let Some(slot) = word.strip_prefix('2') {
        return TypeOf::Wide(slot);
    }
    if let Some(slot) = word.strip_prefix('+') {
        return TypeOf::AtLeast(slot);
    }
    match Type::named(word) {
        Some(ty) => TypeOf::Fixed(ty),
        None => TypeOf::Slot(word),
    }
}
