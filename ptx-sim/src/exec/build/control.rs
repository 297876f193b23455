//! Builders of branches, calls, barriers and other control.

use crate::exec::build::{Build, Use};
use crate::exec::op::{Argument, Barrier, BarrierReduce, Call, Callee, External, NONE, Op};
use crate::isa::types::Type;
use crate::program::{Formal, FunctionId, Operand, Space};

type Built = Result<Op, String>;

/// `bra`
pub(crate) fn branch(_: &mut Build<'_>, u: &Use<'_>) -> Built {
    match u.operand(0)? {
        Operand::Label(target) => Ok(Op::Jump { target: *target, meet: NONE }),
        _ => Err("the target has to be a label of an instruction".into()),
    }
}

/// `brx.idx`
pub(crate) fn branch_table(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let index = b.source_at(u, 0, Type::U32)?;
    match u.operand(1)? {
        Operand::Targets(list) => {
            let targets = b.function.branch_targets[*list as usize].clone();
            Ok(Op::JumpTable { index, targets, meet: NONE })
        }
        _ => Err("the second operand has to be a list that `.branchtargets` declares".into()),
    }
}

/// `ret`
pub(crate) fn ret(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::Return)
}

/// `exit`
pub(crate) fn exit(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::Exit)
}

/// `trap` and `brkpt`
pub(crate) fn trap(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::Trap)
}

/// Hints.
pub(crate) fn nothing(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::Nothing)
}

/// `call`: results in parentheses, the function, arguments in parentheses; results and arguments may be missing.
pub(crate) fn call(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let mut operands = u.operands.iter().peekable();
    let returns = match operands.peek() {
        Some(Operand::List(list)) => {
            operands.next();
            list.as_slice()
        }
        _ => &[],
    };
    let function = match operands.next() {
        Some(operand @ (Operand::Function(_) | Operand::Register(_))) => operand,
        _ => return Err("the name of a function is missing".into()),
    };
    let arguments = match operands.next() {
        Some(Operand::List(list)) => list.as_slice(),
        _ => &[],
    };
    let function = match function {
        Operand::Function(id) => *id,
        // The run compares the prototype with the function that the register names.
        _ => {
            let callee = Callee::Register(b.source(function, Type::B64)?);
            return Ok(Op::Call(Box::new(handed_over(b, callee, arguments, returns)?)));
        }
    };
    if !b.layout.functions.contains_key(&function) {
        return external(b, function);
    }
    let Some((params, results)) = b.formals.get(&function) else {
        return Err(format!("`{}` is a kernel, which cannot be called", b.program.function(function).name));
    };
    if params.len() != arguments.len() || results.len() != returns.len() {
        return Err(format!(
            "`{}` takes {} arguments and gives {} results, not {} and {}",
            b.program.function(function).name,
            params.len(),
            results.len(),
            arguments.len(),
            returns.len()
        ));
    }
    for (formal, operand) in params.iter().zip(arguments).chain(results.iter().zip(returns)) {
        check_sizes(b, formal, operand)?;
    }
    let callee = Callee::Known(b.function_number(function)?);
    Ok(Op::Call(Box::new(handed_over(b, callee, arguments, returns)?)))
}

fn handed_over(
    b: &mut Build<'_>,
    callee: Callee,
    arguments: &[Operand],
    returns: &[Operand],
) -> Result<Call, String> {
    let arguments = arguments.iter().map(|operand| argument(b, operand));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let returns = returns.iter().map(|operand| argument(b, operand));
    let returns = returns.collect::<Result<Vec<_>, _>>()?;
    Ok(Call { callee, arguments, returns })
}

fn external(b: &Build<'_>, function: FunctionId) -> Built {
    match b.program.function(function).name.as_str() {
        "vprintf" => Ok(Op::CallExternal(External::Print)),
        "__assertfail" => Ok(Op::CallExternal(External::AssertFail)),
        name => Err(format!("`{name}` is declared, but defined nowhere")),
    }
}

/// Variables that are handed over have to be as large as the formal parameters.
fn check_sizes(b: &Build<'_>, formal: &Formal, operand: &Operand) -> Result<(), String> {
    let (Formal::Variable(formal), Operand::Variable { variable, .. }) = (formal, operand) else {
        return Ok(());
    };
    let (formal, given) = (b.program.variable(*formal), b.program.variable(*variable));
    if formal.bytes == given.bytes {
        return Ok(());
    }
    Err(format!(
        "`{}` has {} bytes, but the parameter `{}` takes {}",
        given.name, given.bytes, formal.name, formal.bytes
    ))
}

/// The caller's side of a parameter.
fn argument(b: &mut Build<'_>, operand: &Operand) -> Result<Argument, String> {
    match operand {
        Operand::Variable { variable, offset: 0 }
            if matches!(b.program.variable(*variable).space, Space::Param | Space::Local) =>
        {
            Ok(Argument::Bytes { offset: b.local(*variable)?, bytes: b.program.variable(*variable).bytes })
        }
        _ => Ok(Argument::Register(b.source(operand, Type::B64)?)),
    }
}

/// `bar`, `barrier` in all forms.
pub(crate) fn barrier(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    let arrives = u.get("how") == Some("arrive");
    let reduce = match u.get("red") {
        Some("popc") => Some(BarrierReduce::Count),
        Some("and") => Some(BarrierReduce::And),
        Some("or") => Some(BarrierReduce::Or),
        _ => None,
    };
    let mut operands = u.operands.iter();
    let result = match (reduce, operands.clone().next()) {
        (Some(_), Some(operand)) => {
            operands.next();
            b.target(operand)?
        }
        _ => NONE,
    };
    let predicate = match (reduce, u.operands.last()) {
        (Some(_), Some(operand)) => {
            operands.next_back();
            b.predicate(operand)?
        }
        _ => (NONE, false),
    };
    let id = match operands.next() {
        Some(operand) => b.source(operand, Type::U32)?,
        None => b.constant(0),
    };
    let count = match operands.next() {
        Some(operand) => b.source(operand, Type::U32)?,
        None if arrives => return Err("an arrival needs the number of threads".into()),
        None => NONE,
    };
    Ok(Op::Barrier(Box::new(Barrier {
        id,
        count,
        waits: !arrives,
        aligned: u.opcode() == "bar" || u.has("aligned"),
        reduce,
        predicate,
        result,
    })))
}

/// `bar.warp.sync`
pub(crate) fn warp_barrier(b: &mut Build<'_>, u: &Use<'_>) -> Built {
    Ok(Op::WarpBarrier { members: b.source_at(u, 0, Type::B32)? })
}

/// `membar` and `fence`
pub(crate) fn fence(_: &mut Build<'_>, _: &Use<'_>) -> Built {
    Ok(Op::Fence)
}
