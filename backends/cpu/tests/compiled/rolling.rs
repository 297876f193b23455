//! Layers whose rows roll through small buffers, in strips that do not divide the rows, as machine code.

use std::sync::Arc;

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::Target;

use crate::execute::{Arguments, agree};
use crate::kernels::{POOLED, STENCILS, parse};
use crate::support::Call;

/// Rows of the first layer, three at a time, within strips of five rows of the second.
const STENCILS_STEPS: &str = "trace v1
%0 = get_block \"b\"
%1 = get_block \"y\"
%2, %3 = get_loops %1
%4, %5 = split %2, [none, 5]
compute_at %0, %5
rolling_buffer %0, %5
parallel %4
%6, %7 = split %3, [none, 16]
vectorize %7
%8, %9, %10, %11 = get_loops %0
%12, %13 = split %11, [none, 16]
vectorize %13
";

/// Both of the layers before the maxima roll, four rows at a time and two more in each iteration.
const POOLED_STEPS: &str = "trace v1
%0 = get_block \"s\"
%1 = get_block \"r\"
%2 = get_block \"y\"
%3, %4, %5 = get_loops %2
%6, %7 = split %3, [none, 3]
compute_at %1, %7
compute_at %0, %7
rolling_buffer %0, %7
rolling_buffer %1, %7
parallel %6
%8, %9 = split %4, [none, 8]
reorder [%5, %9]
vectorize %9
%10, %11, %12, %13, %14 = get_loops %0
%15, %16 = split %13, [none, 8]
reorder [%14, %16]
%17 = decompose_reduction %0, %15
vectorize %16
unroll %12
";

/// Compares a schedule with the kernel, for sizes that are known when it is compiled and for those that are not.
fn check(kernel: &str, steps: &str, windows: usize, all_sizes: &[&[i64]]) {
    let unscheduled = parse(kernel);
    let steps: Trace = steps.parse().unwrap_or_else(|error| panic!("{error}"));
    let scheduled = |program: &Program| {
        let schedule = steps.replay(program, &Arc::new(Target::generic_cpu()), 0);
        let (program, _) = schedule.unwrap_or_else(|error| panic!("{error}")).into_parts();
        lower(&program, &LowerOptions { contract: false, ..LowerOptions::default() })
            .unwrap_or_else(|error| panic!("{error}\n{program}"))
    };
    for (seed, sizes) in all_sizes.iter().enumerate() {
        let dims: Vec<_> = unscheduled.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
        let bound = unscheduled.bind_dims(&dims);
        let arguments = Arguments::random(&unscheduled, sizes, seed as u64);
        let expected = arguments.without_dims().run(&bound, None).unwrap_or_else(|error| panic!("{error}"));
        for (program, arguments) in
            [(scheduled(&bound), arguments.without_dims()), (scheduled(&unscheduled), arguments)]
        {
            let found = arguments.run(&program, Some(1)).unwrap_or_else(|error| panic!("{error}\n{program}"));
            agree(&found, &expected).unwrap_or_else(|problem| panic!("{sizes:?}: {problem}\n{program}"));
            assert!(program.to_string().matches(")%").count() >= windows || sizes[0] == 1, "{program}");
            let Arguments { dims, scalars, buffers } = arguments;
            Call { dims, scalars, tensors: buffers }.check(&program);
        }
    }
}

#[test]
fn rows_of_a_stencil_roll() {
    check(STENCILS, STENCILS_STEPS, 1, &[&[13, 21], &[31, 50], &[7, 5], &[1, 17]]);
}

#[test]
fn rows_of_two_layers_roll_under_pooling() {
    check(POOLED, POOLED_STEPS, 2, &[&[7, 19], &[29, 35], &[4, 3], &[1, 9]]);
}
