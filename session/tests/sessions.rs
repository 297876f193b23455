//! Sessions of small graphs, compared with the graph's interpreter.

mod compare;
mod support;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Function, Shape, Type};
use tilewright_graph::operator::Value;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Error, Model, Session};

use compare::{agree, interpret};
use support::{call, numbers};

/// Rows of 6 numbers; a product with constant weights, fused arithmetic, a normalisation that is evaluated, other shapes.
fn network() -> Function {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let weights = graph.constant(numbers(&[6, 8], 1));
    let bias = graph.constant(numbers(&[8], 2));
    let product = call(&mut graph, "matmul", &[x, weights], &[]);
    let sum = call(&mut graph, "add", &[product, bias], &[]);
    let gate = call(&mut graph, "sigmoid", &[sum], &[]);
    let gated = call(&mut graph, "mul", &[sum, gate], &[]);
    let scaled = call(&mut graph, "hardmax", &[gated], &[]);
    let shape = graph.constant(HostTensor::vector(vec![-1i64, 2, 4]));
    let pairs = call(&mut graph, "reshape", &[scaled, shape], &[]);
    let turned = call(&mut graph, "transpose", &[pairs], &[("perm", Attribute::Ints(vec![2, 0, 1]))]);
    let chances = call(&mut graph, "softmax", &[gated], &[]);
    graph.finish(vec![turned, chances, pairs, x, chances]).unwrap()
}

fn compare(session: &mut Session, function: &Function, rows: usize) {
    let input = numbers(&[rows, 6], rows);
    let outputs = session.run(&[("x", &input)]).unwrap();
    agree(&outputs, &interpret(function, vec![input.into()]));
}

#[test]
fn every_shape_gives_what_the_interpreter_gives() {
    let function = network();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    // Also the same shape again, and one without rows.
    for rows in [3, 1, 3, 17, 0, 1] {
        compare(&mut session, &function, rows);
    }
    let input = numbers(&[3, 6], 0);
    let (_, profile) = session.profile(&[("x", &input)]).unwrap();
    let kernels = profile.steps.iter().filter(|step| step.kernel.is_some()).count();
    assert_eq!((kernels, profile.steps.len()), (3, 4), "{:?}", profile.steps);
    let evaluated = profile.steps.iter().find(|step| step.kernel.is_none()).expect("one step has no kernel");
    let reason = evaluated.reason.as_deref().expect("the profile gives a reason");
    assert!(reason.contains("hardmax"), "{reason}");
    assert!(profile.arena >= profile.lower_bound && profile.lower_bound > 0);
}

#[test]
fn updates_change_a_tensor_that_nothing_reads_afterwards() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let weights = graph.constant(numbers(&[6, 6], 1));
    let at = graph.constant(HostTensor::new(&[2, 1], vec![1i64, 0]).unwrap());
    let mut sum = call(&mut graph, "matmul", &[x, weights], &[]);
    for (seed, reduction) in ["none", "add"].into_iter().enumerate() {
        let updates = graph.constant(numbers(&[2, 6], seed));
        let reduction = Attribute::Text(reduction.into());
        sum = call(&mut graph, "scatter_nd", &[sum, at, updates], &[("reduction", reduction)]);
    }
    let last = call(&mut graph, "matmul", &[sum, weights], &[]);
    let function = graph.finish(vec![last]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    for rows in [2, 17, 64] {
        compare(&mut session, &function, rows);
    }
}

/// Pictures enlarged by scales, added to their sigmoid, and the largest of all elements marked. The region of the `Resize` is given and
/// empty, as exporters write it; the extents of its result are known when a plan is made and not before, and later ones follow.
fn enlarged(scales: &[f32], mode: &str) -> Function {
    let mut graph = GraphBuilder::new("main");
    let extents = vec![SymInt::symbol("N"), 2.into(), SymInt::symbol("H"), 3.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let region = graph.constant(HostTensor::vector::<f32>(Vec::new()));
    let scales = graph.constant(HostTensor::vector(scales.to_vec()));
    let text = |text: &str| Attribute::Text(text.into());
    let attributes = [
        ("coordinate_transformation_mode", text("asymmetric")),
        ("mode", text(mode)),
        ("nearest_mode", text("floor")),
    ];
    let larger = call(&mut graph, "resize", &[x, region, scales], &attributes);
    let gate = call(&mut graph, "sigmoid", &[larger], &[]);
    let sum = call(&mut graph, "add", &[larger, gate], &[]);
    let rows = graph.constant(HostTensor::vector(vec![0i64, 0, -1]));
    let flat = call(&mut graph, "reshape", &[sum, rows], &[]);
    let scaled = call(&mut graph, "hardmax", &[flat], &[]);
    graph.finish(vec![scaled, larger]).unwrap()
}

#[test]
fn pictures_enlarged_by_scales_have_a_plan() {
    // The mark alone is evaluated.
    let cases: [(&[f32], &str); 4] = [
        (&[1.0, 1.0, 2.0, 3.0], "nearest"),
        (&[1.0, 1.0, 1.5, 0.7], "nearest"),
        (&[1.0, 1.0, 2.0, 2.0], "linear"),
        (&[1.0, 1.0, 1.7, 2.0], "cubic"),
    ];
    for (scales, mode) in cases {
        let function = enlarged(scales, mode);
        let mut session = Session::new(&Model::from_function(&function).unwrap());
        for (batch, height) in [(1, 1), (2, 5), (1, 7)] {
            let input = numbers(&[batch, 2, height, 3], height);
            let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
            let steps = &profile.steps;
            assert!(steps.iter().any(|step| step.kernel.is_some()), "{mode} {scales:?}: {steps:?}");
            let found = steps.iter().filter(|step| step.kernel.is_none()).count();
            assert_eq!(found, 1, "{mode} {scales:?}: {steps:?}");
            agree(&outputs, &interpret(&function, vec![input.into()]));
        }
    }
}

/// Rows that are mirrored at their ends to whole frames of four numbers. Their number is rounded as a float, in calls that are one group:
/// the graph does not follow it, and the plan does.
#[test]
fn padding_that_floats_decide_has_a_plan() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![2.into(), SymInt::symbol("N")]));
    let x = graph.parameter("x", rows);
    let shape = call(&mut graph, "shape", &[x], &[]);
    let [one, four] = [1, 4].map(|number| graph.constant(HostTensor::vector(vec![number as i64])));
    let four_as_float = graph.constant(HostTensor::vector(vec![4f32]));
    let length = call(&mut graph, "gather", &[shape, one], &[]);
    let float = call(&mut graph, "cast", &[length], &[("to", Attribute::Element(ElementType::F32))]);
    let frames = call(&mut graph, "div", &[float, four_as_float], &[]);
    let rounded = call(&mut graph, "ceil", &[frames], &[]);
    let whole = call(&mut graph, "cast", &[rounded], &[("to", Attribute::Element(ElementType::I64))]);
    let padded = call(&mut graph, "mul", &[whole, four], &[]);
    let more = call(&mut graph, "sub", &[padded, length], &[]);
    let none = graph.constant(HostTensor::vector(vec![0i64, 0, 0]));
    let pads = call(&mut graph, "concat", &[none, more], &[("axis", Attribute::Int(0))]);
    let mirrored = call(&mut graph, "pad", &[x, pads], &[("mode", Attribute::Text("reflect".into()))]);
    let raised = call(&mut graph, "exp", &[mirrored], &[]);
    let function = graph.finish(vec![raised]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    for length in [5, 8, 11, 5] {
        let input = numbers(&[2, length], length);
        let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
        let steps = &profile.steps;
        assert!(!steps.is_empty() && steps.iter().all(|step| step.kernel.is_some()), "{steps:?}");
        agree(&outputs, &interpret(&function, vec![input.into()]));
    }
}

/// Keys before the first word of a text, and the part of each key that is not turned: neither has elements, and nothing is computed for them.
#[test]
fn tensors_without_elements_take_no_step() {
    let mut graph = GraphBuilder::new("main");
    let keys = |rows: &str| {
        Type::tensor(ElementType::F32, Shape::Known(vec![2.into(), SymInt::symbol(rows), 6.into()]))
    };
    let (past, x) = (graph.parameter("past", keys("P")), graph.parameter("x", keys("N")));
    let [zero, six, end, two] =
        [0, 6, 99, 2].map(|number| graph.constant(HostTensor::vector(vec![number as i64])));
    let turned = call(&mut graph, "slice", &[x, zero, six, two], &[]);
    let rest = call(&mut graph, "slice", &[x, six, end, two], &[]);
    let raised = call(&mut graph, "exp", &[turned], &[]);
    let lowered = call(&mut graph, "neg", &[rest], &[]);
    let whole = call(&mut graph, "concat", &[raised, lowered], &[("axis", Attribute::Int(-1))]);
    let all = call(&mut graph, "concat", &[past, whole], &[("axis", Attribute::Int(1))]);
    let gate = call(&mut graph, "sigmoid", &[all], &[]);
    let function = graph.finish(vec![gate, all, past]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    for (before, rows) in [(0, 3), (0, 1), (4, 2), (0, 3)] {
        let (past, input) = (numbers(&[2, before, 6], 1), numbers(&[2, rows, 6], rows));
        let (outputs, profile) = session.profile(&[("past", &past), ("x", &input)]).unwrap();
        let steps = &profile.steps;
        assert!(!steps.is_empty() && steps.iter().all(|step| step.kernel.is_some()), "{steps:?}");
        agree(&outputs, &interpret(&function, vec![past.into(), input.into()]));
    }
}

/// An input without elements that a call computes with is no argument that stands for none.
#[test]
fn constants_without_elements_take_part() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let none = graph.constant(numbers(&[0, 6], 0));
    let joined = call(&mut graph, "concat", &[x, none], &[("axis", Attribute::Int(0))]);
    let raised = call(&mut graph, "exp", &[joined], &[]);
    let function = graph.finish(vec![raised]).unwrap();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    for rows in [3, 1, 0] {
        compare(&mut session, &function, rows);
    }
}

#[test]
fn sessions_of_one_model_run_at_the_same_time() {
    let function = network();
    let model = Model::from_function(&function).unwrap();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (model, function) = (&model, &function);
            scope.spawn(move || {
                let mut session = Session::new(model);
                (0..6).for_each(|round| compare(&mut session, function, 1 + (first + round) % 3));
            });
        }
    });
    assert_eq!(model.kernels(), 3, "one for each group, for all shapes and sessions");
}

#[test]
fn wrong_inputs_are_refused_by_name() {
    let model = Model::from_function(&network()).unwrap();
    let mut session = Session::new(&model);
    let good = numbers(&[2, 6], 0);
    let refusal = |session: &mut Session, inputs: &[(&str, &HostTensor)]| session.run(inputs).unwrap_err();
    let error = refusal(&mut session, &[("y", &good)]);
    assert!(matches!(&error, Error::UnknownInput { name, .. } if name == "y"), "{error}");
    assert!(error.to_string().contains("`x`"), "{error}");
    assert!(matches!(refusal(&mut session, &[]), Error::MissingInput(name) if name == "x"));
    for wrong in [numbers(&[2, 7], 0), numbers(&[6], 0), HostTensor::new(&[2, 6], vec![0i32; 12]).unwrap()] {
        let error = refusal(&mut session, &[("x", &wrong)]);
        assert!(matches!(&error, Error::Input { name, .. } if name == "x"), "{error}");
    }
}

/// A file may name one extent in two ways: then its kernels have one dimension for both.
#[test]
fn an_extent_with_two_names_is_one_dimension_where_both_are_equal() {
    let mut graph = GraphBuilder::new("main");
    let rows =
        |name: &str| Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol(name), 6.into()]));
    let keys = graph.parameter("keys", rows("T"));
    let mask = graph.parameter("mask", rows("P"));
    let masked = call(&mut graph, "add", &[keys, mask], &[]);
    let function = graph.finish(vec![masked]).unwrap();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    let mut run = |keys: usize, mask: usize| {
        let inputs = [numbers(&[keys, 6], 1), numbers(&[mask, 6], 2)];
        let [first, second] = &inputs;
        let outputs = session.run(&[("keys", first), ("mask", second)]).unwrap();
        agree(&outputs, &interpret(&function, inputs.map(Value::from).to_vec()));
    };
    (3..9).for_each(|tokens| run(tokens, tokens));
    assert_eq!(model.kernels(), 1, "one for all numbers of tokens");
    // Where one of them broadcasts, the other kernel would be wrong.
    for (keys, mask) in [(4, 1), (1, 4), (1, 1), (4, 4)] {
        run(keys, mask);
    }
}

/// A small integer input chooses a branch; the branches give tensors of different extents.
#[test]
fn an_input_that_chooses_a_branch_has_a_plan_for_each_choice() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let mode = graph.parameter("mode", Type::fixed(ElementType::I64, &[]));
    let two = graph.constant(HostTensor::scalar(2i64));
    let chosen = call(&mut graph, "equal", &[mode, two], &[]);
    graph.open_body();
    let halved = call(&mut graph, "softmax", &[x], &[]);
    let then_body = graph.close_body(vec![halved]).unwrap();
    graph.open_body();
    let axes = graph.constant(HostTensor::vector(vec![1i64]));
    let total = call(&mut graph, "reduce_sum", &[x, axes], &[]);
    let else_body = graph.close_body(vec![total]).unwrap();
    let branch = graph.conditional(chosen, then_body, else_body).unwrap();
    let result = call(&mut graph, "exp", &branch, &[]);
    let function = graph.finish(vec![result]).unwrap();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    for mode in (0i64..30).chain([2, 1]) {
        let (input, choice) = (numbers(&[3, 6], mode as usize), HostTensor::scalar(mode));
        let (outputs, profile) = session.profile(&[("x", &input), ("mode", &choice)]).unwrap();
        // A number that keeps changing chooses nothing: there are no plans for all of its values.
        assert!(mode > 7 || !profile.steps.is_empty(), "mode {mode}");
        let expected = interpret(&function, vec![input.into(), choice.into()]);
        agree(&outputs, &expected);
    }
}

#[test]
fn a_graph_that_decides_while_it_runs_uses_kernels_too() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let total = call(&mut graph, "reduce_sum", &[x], &[("keepdims", Attribute::Int(0))]);
    let zero = graph.constant(HostTensor::scalar(0f32));
    let positive = call(&mut graph, "greater", &[total, zero], &[]);
    graph.open_body();
    let halved = call(&mut graph, "softmax", &[x], &[]);
    let then_body = graph.close_body(vec![halved]).unwrap();
    graph.open_body();
    let negated = call(&mut graph, "neg", &[x], &[]);
    let raised = call(&mut graph, "exp", &[negated], &[]);
    let else_body = graph.close_body(vec![raised]).unwrap();
    let results = graph.conditional(positive, then_body, else_body).unwrap();
    let function = graph.finish(results).unwrap();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    for rows in [1, 2, 3, 4, 5] {
        compare(&mut session, &function, rows);
    }
    assert_eq!(model.kernels(), 3, "one for each group, for all shapes");
}

/// Also where a plan is made for a part between two decisions alone.
#[test]
fn calls_without_kernel_in_a_branch_say_why() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let x = graph.parameter("x", rows);
    let total = call(&mut graph, "reduce_sum", &[x], &[("keepdims", Attribute::Int(0))]);
    let bound = graph.constant(HostTensor::scalar(f32::INFINITY));
    let finite = call(&mut graph, "less", &[total, bound], &[]);
    graph.open_body();
    let marked = call(&mut graph, "hardmax", &[x], &[]);
    let then_body = graph.close_body(vec![marked]).unwrap();
    graph.open_body();
    let negated = call(&mut graph, "neg", &[x], &[]);
    let else_body = graph.close_body(vec![negated]).unwrap();
    let results = graph.conditional(finite, then_body, else_body).unwrap();
    let function = graph.finish(results).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    let input = numbers(&[20, 6], 3);
    let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
    agree(&outputs, &interpret(&function, vec![input.into()]));
    let evaluated = profile.steps.iter().find(|step| &*step.node == "hardmax").expect("it ran");
    assert_eq!(evaluated.kernel, None);
    assert!(evaluated.reason.as_deref().is_some_and(|reason| reason.contains("hardmax")), "{evaluated:?}");
}

#[test]
fn equal_steps_are_one_kernel_to_tune() {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()]));
    let mut value = graph.parameter("x", rows);
    for seed in 1..4 {
        let weights = graph.constant(numbers(&[6, 6], seed));
        let product = call(&mut graph, "matmul", &[value, weights], &[]);
        value = call(&mut graph, "relu", &[product], &[]);
    }
    let function = graph.finish(vec![value]).unwrap();
    let model = Model::from_function(&function).unwrap();
    let input = numbers(&[5, 6], 1);
    let uses = Session::new(&model).kernels(&[("x", &input)]).unwrap();
    let [only] = &uses[..] else { panic!("{} kernels instead of one", uses.len()) };
    assert_eq!((only.steps, &only.dims[..], only.kernel.dims().len()), (3, &[5][..], 1));
}

#[test]
fn elements_of_a_sequence_are_results_of_their_own() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[5, 4]));
    let twice = call(&mut graph, "add", &[x, x], &[]);
    let parts = call(&mut graph, "split_to_sequence", &[twice], &[("axis", Attribute::Int(0))]);
    let nothing = call(&mut graph, "optional", &[parts], &[]);
    graph.set_name(parts, "parts");
    graph.set_name(twice, "twice");
    graph.set_name(nothing, "maybe");
    let model = Model::from_function(&graph.finish(vec![parts, twice, nothing]).unwrap()).unwrap();
    let x = numbers(&[5, 4], 1);
    let mut session = Session::new(&model);
    // The second run has the results of the first one at hand.
    for _ in 0..2 {
        let outputs = session.run(&[("x", &x)]).unwrap();
        let names: Vec<&str> = outputs.iter().map(|(name, _)| name).collect();
        assert_eq!(names[..6], ["parts[0]", "parts[1]", "parts[2]", "parts[3]", "parts[4]", "twice"]);
        assert_eq!(names.len(), 11);
        let whole: &[f32] = outputs.get("twice").unwrap().expect().unwrap();
        let part = outputs.get("parts[3]").unwrap();
        assert_eq!((part.shape(), part.expect::<f32>().unwrap()), (&[1, 4][..], &whole[12..16]));
        assert_eq!(outputs.get("maybe[3]"), Some(part));
    }
}
