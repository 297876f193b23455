//! Candidates that are fitted to symbolic sizes compute what the definition says at other shapes than the one that they were drawn for.

use tilewright_search::fit::fit;

use super::*;

/// An operator with sizes of which some stay symbolic.
struct Case {
    kernel: &'static Kernel,
    /// The positions of the symbolic ones.
    symbolic: &'static [usize],
    /// The shape that candidates are drawn for, and others.
    shapes: &'static [&'static [i64]],
}

impl Case {
    fn check(&self, count: u64) {
        let symbolic = bound_but(self.kernel, self.shapes[0], self.symbolic);
        let (typical, title) = (bound(self.kernel, self.shapes[0]), self.kernel.name());
        let calls: Vec<(Vec<i64>, Vec<AnyTensor>)> = self
            .shapes
            .iter()
            .map(|shape| {
                let dims = self.symbolic.iter().map(|position| shape[*position]).collect();
                let expected = run(&bound(self.kernel, shape));
                (dims, expected.unwrap_or_else(|error| panic!("{title}{shape:?}: {error}")))
            })
            .collect();
        let spec = SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched");
        let target = Arc::new(CpuDevice::host().expect("this machine has a compiler").target().clone());
        let spaces = design_spaces(&typical, &target, &spec.rules, 1);
        let drawn = Generator::new(typical, Arc::clone(&target), spec.clone());
        let fitted = Generator::new(symbolic, target, spec);
        let (mut statistics, first) = (Statistics::default(), setting("TILEWRIGHT_SEED").unwrap_or(0));
        let mut legal = 0;
        for number in 0..count {
            let (seed, space) = (first + number, number as usize % spaces.len());
            let made = drawn.generate(space, &spaces[space], seed, |_, _| None, &mut statistics);
            let Some(candidate) = made else { continue };
            let Some(candidate) = fit(&fitted, &candidate.trace, &mut statistics) else { continue };
            let _context = Context { title, target: "host", seed, candidate: Some(&candidate) };
            verify(&candidate.program, Level::Blocks).unwrap_or_else(|errors| panic!("{errors}"));
            let options = LowerOptions::default();
            let options = if number % 2 == 0 { options } else { options.compact() };
            let flat = lower(&candidate.program, &options).expect("it can be lowered");
            legal += 1;
            let compiled = DEVICES.iter().map(|(name, device)| {
                (*name, device.compile(&[&flat]).remove(0).unwrap_or_else(|error| panic!("{name}: {error}")))
            });
            let compiled: Vec<(&str, Box<dyn Executable>)> = compiled.collect();
            for (dims, expected) in &calls {
                check(
                    "blocks",
                    run_at(&candidate.program, dims).map_err(|error| error.to_string()),
                    expected,
                );
                check("flat", run_at(&flat, dims).map_err(|error| error.to_string()), expected);
                for (name, kernel) in &compiled {
                    check(name, execute(&**kernel, &flat, dims), expected);
                }
            }
        }
        println!("{title}: {legal} of {count} candidates were fitted: {:?}", statistics.rejected);
        assert!(legal > 0 || count < 8, "{title}: no candidate suits symbolic sizes");
    }
}

/// A test for each operator.
macro_rules! symbolic_sizes {
    ($($test:ident of $module:ident: $kernel:ident, $symbolic:expr, $shapes:expr;)+) => {$(
        #[test]
        fn $test() {
            Case { kernel: $module::$kernel::kernel(), symbolic: &$symbolic, shapes: &$shapes }.check(cases().div_ceil(4));
        }
    )+};
}

symbolic_sizes! {
    symbolic_sizes_of_c1d of kernels: conv1d, [0, 1],
        [&[1, 16, 3, 3, 16, 2, 1], &[1, 13, 3, 3, 16, 2, 1], &[3, 3, 3, 3, 16, 2, 1], &[2, 64, 3, 3, 16, 2, 1]];
    symbolic_sizes_of_c2d of kernels: conv2d, [0, 1, 2],
        [&[1, 8, 8, 8, 3, 3, 16, 1, 1, 1, 1], &[1, 7, 9, 8, 3, 3, 16, 1, 1, 1, 1], &[2, 1, 1, 8, 3, 3, 16, 1, 1, 1, 1],
         &[2, 5, 17, 8, 3, 3, 16, 1, 1, 1, 1]];
    symbolic_sizes_of_wide_strides of kernels: conv2d, [1, 2],
        [&[1, 16, 16, 1, 7, 7, 8, 2, 3, 1, 1], &[1, 9, 14, 1, 7, 7, 8, 2, 3, 1, 1], &[1, 23, 31, 1, 7, 7, 8, 2, 3, 1, 1]];
    symbolic_sizes_of_dilation of kernels: conv2d, [1, 2],
        [&[1, 8, 8, 8, 3, 3, 8, 1, 2, 2, 1], &[1, 4, 3, 8, 3, 3, 8, 1, 2, 2, 1], &[1, 11, 13, 8, 3, 3, 8, 1, 2, 2, 1]];
    symbolic_sizes_of_dep of kernels: depthwise_conv2d, [0, 1, 2],
        [&[1, 14, 14, 24, 3, 3, 2, 1], &[2, 6, 5, 24, 3, 3, 2, 1], &[1, 1, 3, 24, 3, 3, 2, 1], &[1, 15, 18, 24, 3, 3, 2, 1]];
    symbolic_sizes_of_grp of kernels: conv2d, [1, 2],
        [&[1, 8, 8, 4, 3, 3, 32, 1, 1, 1, 2], &[1, 5, 4, 4, 3, 3, 32, 1, 1, 1, 2], &[1, 9, 11, 4, 3, 3, 32, 1, 1, 1, 2]];
    symbolic_sizes_of_t2d of kernels: conv2d_transpose, [1, 2],
        [&[1, 4, 4, 5, 4, 4, 8, 2, 1], &[1, 1, 3, 5, 4, 4, 8, 2, 1], &[1, 5, 6, 5, 4, 4, 8, 2, 1]];
    symbolic_sizes_of_cbr of kernels: conv2d_bias_norm_relu, [1, 2],
        [&[1, 14, 14, 3, 3, 3, 8, 2, 1], &[1, 3, 6, 3, 3, 3, 8, 2, 1], &[1, 13, 17, 3, 3, 3, 8, 2, 1]];
    symbolic_sizes_of_gmm of kernels: batch_matmul, [0, 1, 2, 3],
        [&[2, 16, 24, 16], &[1, 1, 1, 1], &[2, 37, 5, 31], &[1, 64, 0, 16], &[2, 16, 16, 0]];
    symbolic_sizes_of_rows of kernels: batch_matmul, [1], [&[2, 16, 24, 16], &[2, 1, 24, 16], &[2, 37, 24, 16], &[2, 67, 24, 16]];
    symbolic_sizes_of_sfm of kernels: softmax, [0, 1], [&[16, 64], &[1, 1], &[7, 131], &[64, 17]];
    symbolic_sizes_of_nrm of kernels: norm, [0, 1, 2], [&[2, 16, 64], &[1, 1, 1], &[3, 17, 67]];
    symbolic_sizes_of_lnm of memory: layer_norm, [0, 1], [&[8, 64], &[5, 37], &[1, 131]];
    symbolic_sizes_of_trn of memory: transpose, [0, 1], [&[64, 64], &[67, 131], &[1, 73]];
    symbolic_sizes_of_att of attention: attention, [1, 2], [&[2, 8, 16, 8], &[2, 1, 37, 8], &[2, 5, 1, 8], &[2, 17, 33, 8]];
    symbolic_sizes_of_rnn of recurrences: recurrent, [0, 1], [&[2, 5, 16, 16], &[1, 1, 16, 16], &[3, 9, 16, 16]];
}
