//! Streams, places in them, recorded graphs and page-locked memory, through the mock driver, which does work as late as the rules of streams
//! let it.

use std::sync::OnceLock;
use std::time::Duration;

use tilewright::core::device::{CallError, DeviceError};
use tilewright::gpu::{self, PinnedTensor};
use tilewright::prelude::*;
use tilewright::{DeviceHandle, DeviceTensor, Error};

fn open() -> DeviceHandle {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
        gpu::load_driver(&file).expect("it is a library");
    });
    gpu::open(0).expect("the GPU is there")
}

/// y = a · x + b, element by element.
#[tensor_kernel]
fn affine(x: &Tensor<i32, N>, a: i32, b: i32) -> Tensor<i32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] * a + b;
    }
    y
}

#[tensor_kernel]
fn double(x: &mut Tensor<i32, N>) {
    for i in 0..N {
        x[[i]] = x[[i]] * 2;
    }
}

#[tensor_kernel]
fn matmul(a: &Tensor<f32, M, K>, #[constant] b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

#[tensor_kernel]
fn pick(table: &Tensor<i32, V>, at: &Tensor<i32, N>) -> Tensor<i32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = table[[at[[i]] as usize]];
    }
    y
}

fn numbers(len: usize, step: i32) -> Tensor<i32, 1> {
    Tensor::from_fn([len], |[i]| i as i32 * step).expect("it is small")
}

/// Work that alternates between streams gives what it gives in order, whoever reads and writes.
#[test]
fn work_on_several_streams_waits_where_it_depends() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let streams = [gpu.new_stream().unwrap(), gpu.new_stream().unwrap()];
    let mut value = device.upload(&numbers(101, 1)).unwrap();
    let mut expected = numbers(101, 1);
    for round in 0..6 {
        let stream = &streams[round % 2];
        let next = stream.scope(|| affine::on(&device, &value, 3, round as i32)).unwrap();
        expected = affine::reference(&expected, 3, round as i32).unwrap();
        // The old value is given back while the other stream may still read it; the new one is written on the first stream.
        value = next;
        double::on(&device, &mut value).unwrap();
        double::reference(&mut expected).unwrap();
    }
    assert_eq!(value.to_host().unwrap(), expected);
}

/// A write waits for reads on other streams.
#[test]
fn tensors_are_not_overwritten_while_others_read_them() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let [first, second] = [gpu.new_stream().unwrap(), gpu.new_stream().unwrap()];
    let mut x = device.upload(&numbers(500, 1)).unwrap();
    let a = first.scope(|| affine::on(&device, &x, 1, 7)).unwrap();
    let b = second.scope(|| affine::on(&device, &x, 1, 8)).unwrap();
    device.device().synchronize().unwrap();
    let c = first.scope(|| affine::on(&device, &x, 1, 9)).unwrap();
    second.scope(|| double::on(&device, &mut x)).unwrap();
    for (result, by) in [(a, 7), (b, 8), (c, 9)] {
        assert_eq!(result.to_host().unwrap(), affine::reference(&numbers(500, 1), 1, by).unwrap());
    }
    assert_eq!(x.to_host().unwrap(), numbers(500, 2));
}

#[test]
fn places_in_streams_are_waited_for_and_timed() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let [first, second] = [gpu.new_stream().unwrap(), gpu.new_stream().unwrap()];
    let x = device.upload(&numbers(64, 1)).unwrap();
    let start = first.record().unwrap();
    let y = first.scope(|| affine::on(&device, &x, 2, 0)).unwrap();
    let end = first.record().unwrap();
    second.wait_for(&end).unwrap();
    second.synchronize().unwrap();
    assert!(end.is_reached().unwrap(), "the second stream has waited for it");
    assert!(end.since(&start).unwrap() > Duration::ZERO);
    assert_eq!(y.to_host().unwrap(), numbers(64, 2));
}

#[test]
fn scopes_end_where_they_end() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let stream = gpu.new_stream().unwrap();
    let x = device.upload(&numbers(10, 1)).unwrap();
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.scope(|| panic!("inside"))));
    assert!(panicked.is_err());
    let y = stream.scope(|| {
        let inner = gpu.new_stream().unwrap();
        let y = inner.scope(|| affine::on(&device, &x, 1, 1)).unwrap();
        affine::on(&device, &y, 1, 1).unwrap()
    });
    assert_eq!(affine::on(&device, &y, 1, 1).unwrap().to_host().unwrap()[[9]], 12);
}

#[test]
fn a_recorded_graph_computes_with_each_launch() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let mut x = device.upload(&numbers(77, 1)).unwrap();
    let record = || -> Result<DeviceTensor<i32, 1>, Error> {
        let between = affine::on(&device, &x, 2, 1)?;
        // `between` is dropped when the recording ends; the graph keeps its memory.
        affine::on(&device, &between, 1, 10)
    };
    let (graph, y) = gpu.record(record).unwrap();
    for step in [1, 3, -2] {
        x.write(&numbers(77, step)).unwrap();
        graph.launch().unwrap();
        let expected = Tensor::from_fn([77], |[i]| i as i32 * step * 2 + 11).unwrap();
        assert_eq!(y.to_host().unwrap(), expected, "step {step}");
    }
    // A launch on a stream waits for the work there, and its results can be read from there.
    let stream = gpu.new_stream().unwrap();
    let sum = stream.scope(|| {
        double::on(&device, &mut x).unwrap();
        graph.launch().unwrap();
        affine::on(&device, &y, 1, 1).unwrap()
    });
    let expected = Tensor::from_fn([77], |[i]| i as i32 * -4 * 2 + 12).unwrap();
    assert_eq!(sum.to_host().unwrap(), expected);
    drop((x, y));
    graph.launch().expect("the graph keeps what it needs");
    device.synchronize().unwrap();
}

#[test]
fn results_that_launches_write_are_not_kept_as_constants() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let whole = |seed: usize| Tensor::from_fn([16, 16], |[i, j]| ((i * 3 + j + seed) % 5) as f32).unwrap();
    let mut input = device.upload(&whole(0)).unwrap();
    let identity = device.upload(&Tensor::from_fn([16, 16], |[i, j]| f32::from(i == j)).unwrap()).unwrap();
    matmul::on(&device, &input, &identity).unwrap();
    let (graph, weights) = gpu.record(|| matmul::on(&device, &input, &identity)).unwrap();
    for seed in 1..4 {
        input.write(&whole(seed)).unwrap();
        graph.launch().unwrap();
        let product = matmul::on(&device, &identity, &weights).unwrap();
        assert_eq!(product.to_host().unwrap(), whole(seed));
    }
}

#[test]
fn work_that_cannot_be_recorded_is_refused() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let x = device.upload(&numbers(8, 1)).unwrap();
    let message = |error: Error| error.to_string();
    let upload = gpu.record(|| device.upload(&numbers(8, 1))).map(drop);
    assert!(message(upload.unwrap_err()).contains("a copy to the GPU cannot be recorded in a graph"));
    let download = gpu.record(|| x.to_host()).map(drop);
    assert!(message(download.unwrap_err()).contains("a copy from the GPU cannot be recorded"));
    let at = device.upload(&numbers(8, 0)).unwrap();
    let gather = gpu.record(|| pick::on(&device, &x, &at)).map(drop);
    assert!(message(gather.unwrap_err()).contains("reports indices out of bounds"));
    let nested = gpu.record(|| -> Result<(), Error> { gpu.record(|| Ok::<(), Error>(())).map(drop) });
    assert!(message(nested.map(drop).unwrap_err()).contains("is being recorded on this thread already"));
    // A recording that failed leaves nothing behind.
    let (graph, y) = gpu.record(|| affine::on(&device, &x, 5, 0)).unwrap();
    graph.launch().unwrap();
    assert_eq!(y.to_host().unwrap(), numbers(8, 5));
    let (empty, ()) = gpu.record(|| Ok::<(), Error>(())).unwrap();
    empty.launch().unwrap();
}

#[test]
fn page_locked_memory_is_copied_while_the_host_goes_on() {
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let stream = gpu.new_stream().unwrap();
    let mut sent = PinnedTensor::<i32, 1>::zeros(&device, [300]).unwrap();
    let mut received = PinnedTensor::<i32, 1>::zeros(&device, [300]).unwrap();
    let mut x = device.zeros::<i32, 1>([300]).unwrap();
    for step in 1..4 {
        // This waits for the copy of the round before.
        sent.write(&numbers(300, step)).unwrap();
        stream.scope(|| sent.upload(&mut x)).unwrap();
        let y = affine::on(&device, &x, 1, 1).unwrap();
        stream.scope(|| received.download(&y)).unwrap();
        drop(y);
        let expected = affine::reference(&numbers(300, step), 1, 1).unwrap();
        assert_eq!(received.as_slice().unwrap(), expected.as_slice());
        assert_eq!(received.to_tensor().unwrap(), expected);
    }
    sent.as_mut_slice().unwrap().fill(4);
    sent.upload(&mut x).unwrap();
    drop(sent);
    assert_eq!(x.to_host().unwrap(), Tensor::full([300], 4).unwrap(), "dropping waits for the copy");
    let mut flags = PinnedTensor::<bool, 1>::zeros(&device, [3]).unwrap();
    flags.write(&Tensor::from_slice(&[true, false, true], [3]).unwrap()).unwrap();
    let mut on_gpu = device.zeros::<bool, 1>([3]).unwrap();
    flags.upload(&mut on_gpu).unwrap();
    assert_eq!(on_gpu.to_host().unwrap(), flags.to_tensor().unwrap());
    let error = received.download(&device.zeros::<i32, 1>([299]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Shape(_)), "{error:?}");
}

#[test]
fn only_gpus_have_streams() {
    let cpu = tilewright::devices::open("cpu").unwrap();
    let error = gpu::of(&cpu).unwrap_err();
    assert!(matches!(&error, Error::Device(DeviceError::Unavailable { .. })), "{error:?}");
    assert!(error.to_string().contains("it is no GPU"), "{error}");
    let error = PinnedTensor::<f32, 1>::zeros(&cpu, [1]).map(drop).unwrap_err();
    assert!(!matches!(error, Error::Call(CallError::Device(_))));
}

#[test]
fn streams_and_graphs_are_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<gpu::Stream>();
    shared::<gpu::Event>();
    shared::<gpu::Graph>();
    shared::<PinnedTensor<f32, 2>>();
    let device = open();
    let gpu = gpu::of(&device).unwrap();
    let x = device.upload(&numbers(40, 1)).unwrap();
    std::thread::scope(|scope| {
        for by in 0..3 {
            let (device, x) = (&device, &x);
            let stream = gpu.new_stream().unwrap();
            scope.spawn(move || {
                let y = stream.scope(|| affine::on(device, x, 2, by)).unwrap();
                assert_eq!(y.to_host().unwrap(), affine::reference(&numbers(40, 1), 2, by).unwrap());
            });
        }
    });
}
