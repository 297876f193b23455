//! Which row of the table an instruction has, and whether its operands agree with it.

use crate::isa::pattern::{OperandSpec, Role, Slot, TypeOf};
use crate::isa::table::{self, Form};
use crate::isa::types::{Class, Type};
use crate::program::{Base, Function, Literal, Operand, RegisterId};

/// A form, and the choice in each of its slots.
pub(crate) type Choice = (&'static Form, Vec<Option<&'static str>>);

/// Finds the form of an instruction. The message of an error names what is wrong and what would be right.
pub(crate) fn choose(
    opcode: &str,
    modifiers: &[&str],
    operands: &[Operand],
    function: &Function,
) -> Result<Choice, String> {
    let written = written(opcode, modifiers);
    let Some(forms) = table::forms(opcode) else {
        return Err(format!("unknown instruction `{written}`"));
    };
    let mut furthest = (0, Vec::new());
    let mut wrong_operand = None;
    for form in forms {
        match choices(&form.slots, modifiers) {
            Ok(choices) => match check_operands(form, &choices, operands, function) {
                Ok(()) => return Ok((form, choices)),
                Err(message) => wrong_operand = wrong_operand.or(Some(message)),
            },
            Err((at, expected)) => {
                if at > furthest.0 {
                    furthest = (at, expected);
                } else if at == furthest.0 {
                    furthest.1.extend(expected);
                }
            }
        }
    }
    if let Some(message) = wrong_operand {
        return Err(format!("`{written}`: {message}"));
    }
    for form in forms {
        if let Some(choices) = choices_in_any_order(&form.slots, modifiers)
            && check_operands(form, &choices, operands, function).is_ok()
        {
            return Ok((form, choices));
        }
    }
    let (at, mut expected) = furthest;
    expected.sort_unstable();
    expected.dedup();
    let expected = expected.iter().map(|word| format!(".{word}")).collect::<Vec<_>>().join(" ");
    Err(match modifiers.get(at) {
        Some(modifier) if expected.is_empty() => {
            format!("`{written}`: nothing is known that follows here, but there is `.{modifier}`")
        }
        Some(modifier) => {
            format!("`{written}`: unknown modifier `.{modifier}`, expected one of {expected}")
        }
        None => format!("`{written}`: a modifier is missing, expected one of {expected}"),
    })
}

fn written(opcode: &str, modifiers: &[&str]) -> String {
    let mut text = opcode.to_owned();
    for modifier in modifiers {
        text.push('.');
        text.push_str(modifier);
    }
    text
}

/// The choices of all slots, or at which modifier they end and which would be right there.
fn choices(
    slots: &[Slot],
    modifiers: &[&str],
) -> Result<Vec<Option<&'static str>>, (usize, Vec<&'static str>)> {
    let mut at = 0;
    let mut chosen = Vec::with_capacity(slots.len());
    let mut expected = Vec::new();
    for slot in slots {
        let here = modifiers.get(at);
        let found = slot.alternatives.iter().find(|word| Some(*word) == here).copied();
        if found.is_some() {
            at += 1;
            expected.clear();
        } else {
            expected.extend(&slot.alternatives);
            if !slot.optional {
                return Err((at, expected));
            }
        }
        chosen.push(found);
    }
    if at == modifiers.len() { Ok(chosen) } else { Err((at, expected)) }
}

/// The choices of all slots by modifiers in another order: the assembler takes most of them in any order, and libraries write
/// `atom.add.relaxed.gpu.s32` and `min.s16x2.relu`. Modifiers of one sort, such as the two types of a conversion, keep their order.
fn choices_in_any_order(slots: &[Slot], modifiers: &[&str]) -> Option<Vec<Option<&'static str>>> {
    let mut left = modifiers.to_vec();
    let mut chosen = Vec::with_capacity(slots.len());
    for slot in slots {
        let place = left.iter().position(|word| slot.alternatives.contains(word));
        let word = place.map(|place| left.remove(place));
        if word.is_none() && !slot.optional {
            return None;
        }
        chosen.push(word.and_then(|word| slot.alternatives.iter().find(|known| **known == word).copied()));
    }
    left.is_empty().then_some(chosen)
}

/// The choice of the slot with this name.
pub(crate) fn choice(form: &Form, choices: &[Option<&'static str>], name: &str) -> Option<&'static str> {
    let position = form.slots.iter().position(|slot| slot.name == name)?;
    choices[position]
}

fn check_operands(
    form: &Form,
    choices: &[Option<&'static str>],
    operands: &[Operand],
    function: &Function,
) -> Result<(), String> {
    let least = form.operands.iter().filter(|spec| !spec.optional).count();
    let most = form.operands.len();
    if operands.len() < least || operands.len() > most {
        let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        return Err(format!("takes {wanted} operands, but has {}", operands.len()));
    }
    for (position, (spec, operand)) in form.operands.iter().zip(operands).enumerate() {
        check_operand(form, choices, *spec, operand, function)
            .map_err(|message| format!("operand {}: {message}", position + 1))?;
    }
    Ok(())
}

/// The type that a type of the table stands for here, and whether wider registers are accepted, too.
fn resolve(form: &Form, choices: &[Option<&'static str>], ty: TypeOf) -> Result<(Type, bool), String> {
    let named = |slot| {
        let name = choice(form, choices, slot).unwrap_or("b32");
        Type::named(name).ok_or_else(|| format!("`.{name}` is no type"))
    };
    Ok(match ty {
        TypeOf::Fixed(ty) => (ty, false),
        TypeOf::Slot(slot) => (named(slot)?, false),
        TypeOf::AtLeast(slot) => (named(slot)?, true),
        TypeOf::Wide(slot) => {
            let narrow = named(slot)?;
            (narrow.widened().ok_or_else(|| format!("{narrow} has no wider type"))?, false)
        }
    })
}

fn check_operand(
    form: &Form,
    choices: &[Option<&'static str>],
    spec: OperandSpec,
    operand: &Operand,
    function: &Function,
) -> Result<(), String> {
    match spec.role {
        Role::Destination(ty) => {
            let (ty, wider) = resolve(form, choices, ty)?;
            destination(operand, ty, wider, function)
        }
        Role::Source(ty) => {
            let (ty, wider) = resolve(form, choices, ty)?;
            source(operand, ty, wider, function)
        }
        Role::DestinationVector(ty) => {
            let (ty, wider) = resolve(form, choices, ty)?;
            vector(form, choices, operand, |part| destination(part, ty, wider, function))
        }
        Role::SourceVector(ty) => {
            let (ty, wider) = resolve(form, choices, ty)?;
            vector(form, choices, operand, |part| source(part, ty, wider, function))
        }
        Role::Predicate => match operand {
            Operand::Negated(id) => register(*id, Type::Pred, false, function),
            _ => source(operand, Type::Pred, false, function),
        },
        Role::PredicatePair => match operand {
            Operand::Pair(p, q) => {
                destination(p, Type::Pred, false, function)?;
                destination(q, Type::Pred, false, function)
            }
            _ => destination(operand, Type::Pred, false, function),
        },
        Role::Address => address(operand, function),
        Role::Constant => match operand {
            Operand::Literal(Literal::Integer(_)) => Ok(()),
            _ => Err("has to be an integer constant".into()),
        },
        Role::Braces => match operand {
            Operand::Vector(_) => Ok(()),
            _ => Err("has to be a vector in braces".into()),
        },
        Role::Label => match operand {
            Operand::Label(_) | Operand::Targets(_) => Ok(()),
            _ => Err("has to be a label".into()),
        },
        Role::List => match operand {
            Operand::List(_) => Ok(()),
            _ => Err("has to be a list in parentheses".into()),
        },
        Role::Any => Ok(()),
    }
}

fn vector(
    form: &Form,
    choices: &[Option<&'static str>],
    operand: &Operand,
    check: impl Fn(&Operand) -> Result<(), String>,
) -> Result<(), String> {
    let count = match choice(form, choices, "vec") {
        Some("v2") => 2,
        Some("v4") => 4,
        Some("v8") => 8,
        _ => {
            // A vector of one is the same as its element.
            return match operand {
                Operand::Vector(parts) if parts.len() == 1 => check(&parts[0]),
                _ => check(operand),
            };
        }
    };
    match operand {
        Operand::Vector(parts) if parts.len() == count => parts.iter().try_for_each(check),
        _ => Err(format!("has to be a vector of {count} in braces")),
    }
}

fn register(id: RegisterId, wanted: Type, wider: bool, function: &Function) -> Result<(), String> {
    let declared = function.register_type(id);
    let right = declared.fits(wanted)
        || (wider
            && declared.bits() > wanted.bits()
            && !matches!(declared.class(), Class::Float | Class::Predicate));
    if right {
        return Ok(());
    }
    let name = function.register_name(id);
    Err(format!("`{name}` is declared as {declared}, but {wanted} is wanted"))
}

fn destination(operand: &Operand, ty: Type, wider: bool, function: &Function) -> Result<(), String> {
    match operand {
        Operand::Register(id) => register(*id, ty, wider, function),
        Operand::Sink => Ok(()),
        _ => Err("has to be a register".into()),
    }
}

fn source(operand: &Operand, ty: Type, wider: bool, function: &Function) -> Result<(), String> {
    match operand {
        Operand::Register(id) => register(*id, ty, wider, function),
        Operand::Literal(Literal::Integer(_)) => Ok(()),
        Operand::Literal(_) if matches!(ty.class(), Class::Float | Class::Bits) => Ok(()),
        Operand::Literal(_) => Err(format!("is a floating-point constant, but {ty} is wanted")),
        Operand::Special(special) if special.bits() >= ty.bits() && ty != Type::Pred => Ok(()),
        Operand::Special(_) if wider => Ok(()),
        Operand::Variable { .. } | Operand::Function(_) if ty.bits() >= 32 => Ok(()),
        _ => Err(format!("has to be a register or a constant of type {ty}")),
    }
}

fn address(operand: &Operand, function: &Function) -> Result<(), String> {
    match operand {
        Operand::Address { base: Base::Register(id), .. } => {
            let declared = function.register_type(*id);
            let right = matches!(declared.bits(), 32 | 64) && !declared.is_float();
            if right {
                return Ok(());
            }
            let name = function.register_name(*id);
            Err(format!("`{name}` is declared as {declared}, but an address has 32 or 64 bits"))
        }
        Operand::Address { .. } => Ok(()),
        _ => Err("has to be an address in brackets".into()),
    }
}
