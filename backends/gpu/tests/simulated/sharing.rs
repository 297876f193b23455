//! Buffers in memory that threads share: those whose lifetimes do not meet share bytes.

use tilewright_core::program::Program;

use crate::assembler::assemble;
use crate::support::{Call, lowered, parse};

/// Some steps one after the other, each from one buffer to the next; the threads of a step load elements that others have stored.
fn chain(steps: usize, threads: usize) -> Program {
    let mut text = format!("kernel chain(in x: f32[{threads}], out y: f32[{threads}]) {{\n");
    for step in 1..steps {
        text += &format!("  buffer s{step}: f32[{threads}] shared\n");
    }
    text += "  bound block_x for b in 0..1 {\n";
    let name = |step: usize| match step {
        0 => "x".to_owned(),
        _ if step == steps => "y".to_owned(),
        _ => format!("s{step}"),
    };
    for step in 1..=steps {
        let (from, to, last) = (name(step - 1), name(step), threads - 1);
        text += &format!(
            "    bound thread_x for t{step} in 0..{threads} {{
      block {to}(v: spatial {threads} = t{step}) {{ {to}[v] = {from}[{last} - v] + 1.0 }}
    }}\n"
        );
    }
    parse(&(text + "  }\n}"))
}

/// Steps that have a large buffer each, in which each thread loads what it has stored itself.
fn apart(buffers: usize, elements: usize) -> Program {
    let threads = 128;
    let each = elements / threads;
    let mut text = format!("kernel apart(in x: f32[{elements}]");
    for step in 0..buffers {
        text += &format!(", out y{step}: f32[{elements}]");
    }
    text += ") {\n";
    for step in 0..buffers {
        text += &format!("  buffer s{step}: f32[{elements}] shared\n");
    }
    text += "  bound block_x for b in 0..1 {\n";
    for step in 0..buffers {
        for (to, from, number) in
            [(format!("s{step}"), "x".to_owned(), 0), (format!("y{step}"), format!("s{step}"), 1)]
        {
            text += &format!(
                "    bound thread_x for t{step}_{number} in 0..{threads} {{ for k{step}_{number} in 0..{each} {{
      block {to}(v: spatial {elements} = k{step}_{number}*{threads} + t{step}_{number}) {{ {to}[v] = {from}[v] + {step}.0 }}
    }} }}\n"
            );
        }
    }
    parse(&(text + "  }\n}"))
}

#[test]
fn buffers_with_lifetimes_that_do_not_meet_share_bytes() {
    for (steps, threads) in [(2, 64), (3, 64), (5, 33), (8, 128)] {
        let program = chain(steps, threads);
        let flat = lowered(&program);
        let call = Call::random(&program, &[], 5);
        let code = call.compare(&flat);
        assemble(&code.ptx);
        let of_one = (4 * threads as u64).next_multiple_of(16);
        let expected = of_one * (steps as u64 - 1).min(2);
        assert_eq!(u64::from(code.launches[0].shared_bytes), expected, "{flat}");
        assert_eq!(call.interpreted(&program), call.simulated(&flat, &code).tensors);
    }
}

#[test]
fn barriers_are_added_where_buffers_do_not_fit_otherwise() {
    // Two buffers of 64 KiB fit into the 163 KiB of a block, three do not.
    for (buffers, added) in [(2, 0), (3, 1), (4, 2)] {
        let program = apart(buffers, 1 << 14);
        let flat = lowered(&program);
        let call = Call::random(&program, &[], 5);
        let code = call.compare(&flat);
        assemble(&code.ptx);
        let barriers = code.ptx.matches("bar.sync").count();
        assert!(barriers >= added.min(1) && barriers < buffers, "{barriers} barriers\n{}", code.ptx);
        assert!(code.launches[0].dynamic_shared_bytes >= 1 << 16, "{:?}", code.launches[0]);
        assert_eq!(call.interpreted(&program), call.simulated(&flat, &code).tensors);
    }
}
