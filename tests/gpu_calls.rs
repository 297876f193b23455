//! Calls of kernels on GPUs, with tensors in their memory: results, errors, and what stays where it is. The mock driver compiles and executes
//! the same PTX as a GPU's.

use std::ffi::{CString, c_char, c_uint};
use std::sync::OnceLock;
use std::thread;

use tilewright::core::device::{CallError, DeviceError};
use tilewright::definition::ArgumentProblem;
use tilewright::prelude::*;
use tilewright::{DeviceHandle, DeviceTensor, Error};

/// GPUs of which nothing is expected to fail, one with little memory, and one that is lost after some launches and copies.
const SOUND: usize = 0;
const OTHER: usize = 1;
const SMALL: usize = 2;
const LOST: usize = 3;

const SETTINGS: &str = "device=sm_80 device=sm_90 device=sm_80,memory=64K device=sm_80,lose-after=6";

/// Opens a GPU of the mock driver.
fn open(number: usize) -> DeviceHandle {
    static LOADED: OnceLock<libloading::Library> = OnceLock::new();
    LOADED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
        tilewright::gpu::load_driver(&file).expect("it is a library");
        // SAFETY: it is loaded already.
        let library = unsafe { libloading::Library::new(file) }.expect("it is a library");
        let settings = CString::new(SETTINGS).expect("it has no zero byte");
        // SAFETY: the function has this type, and the string ends in a zero byte.
        let code = unsafe {
            let configure: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_uint> =
                library.get(b"tilewright_mock_configure\0").expect("the mock driver has it");
            configure(settings.as_ptr())
        };
        assert_eq!(code, 0);
        library
    });
    tilewright::gpu::open(number).expect("the GPU is there")
}

#[tensor_kernel]
fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
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

/// The same with weights that stay the same.
#[tensor_kernel]
fn weighted(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += x[[i, k]] * w[[k, j]];
            }
        }
    }
    c
}

#[tensor_kernel]
fn accumulate(sum: &mut Tensor<i32, N>, x: &Tensor<i32, N>, factor: i32) {
    for i in 0..N {
        sum[[i]] += x[[i]] * factor;
    }
}

/// Two results, one of them of `bool`s, with a window.
#[tensor_kernel]
fn windows(x: &Tensor<f32, N>, window: usize) -> (Tensor<f32, { N - window + 1 }>, Tensor<bool, N>) {
    let mut y = Tensor::zeros();
    let mut positive = Tensor::zeros();
    for i in 0..N - window + 1 {
        for j in 0..window {
            y[[i]] += x[[i + j]];
        }
    }
    for i in 0..N {
        positive[[i]] = x[[i]] > 0.0;
    }
    (y, positive)
}

#[tensor_kernel]
fn gather(table: &Tensor<f32, V, D>, rows: &Tensor<i32, N>) -> Tensor<f32, N, D> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        for j in 0..D {
            y[[i, j]] = table[[rows[[i]] as usize, j]];
        }
    }
    y
}

struct Scaling;

#[tensor_kernel]
impl Scaling {
    #[tensor_kernel]
    fn scaled(x: &Tensor<f64, N>, by: f64) -> Tensor<f64, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i]] * by;
        }
        y
    }
}

/// A matrix of small whole numbers, so that sums are exact in any order.
fn whole(rows: usize, columns: usize, seed: usize) -> Tensor<f32, 2> {
    Tensor::from_fn([rows, columns], |[i, j]| ((i * 7 + j * 5 + seed) % 9) as f32 - 4.0).expect("it is small")
}

fn call_error(error: Error) -> CallError {
    match error {
        Error::Call(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn results_stay_on_the_device_and_are_those_of_the_definition() {
    let gpu = open(SOUND);
    for (m, k, n) in [(1, 1, 1), (5, 7, 3), (33, 64, 17), (32, 48, 40), (2, 131, 1)] {
        let (a, b, c) = (whole(m, k, 1), whole(k, n, 2), whole(n, 5, 3));
        let (on_a, on_b) = (gpu.upload(&a).expect("it fits"), gpu.upload(&b).expect("it fits"));
        let first: DeviceTensor<f32, 2> = matmul::on(&gpu, &on_a, &on_b).expect("the shapes fit");
        assert_eq!(first.shape(), [m, n]);
        assert_eq!(first.device(), &gpu);
        let second = matmul::on(&gpu, &first, &gpu.upload(&c).expect("it fits")).expect("the shapes fit");
        let expected = matmul::reference(&matmul::reference(&a, &b).unwrap(), &c).unwrap();
        assert_eq!(second.to_host().expect("nothing fails"), expected, "{m}×{k}×{n}");
    }
}

#[test]
fn tensors_without_elements_are_results_too() {
    let gpu = open(SOUND);
    let a = gpu.upload(&Tensor::<f32, 2>::zeros([0, 4]).unwrap()).expect("it fits");
    let b = gpu.upload(&whole(4, 3, 0)).expect("it fits");
    assert_eq!(matmul::on(&gpu, &a, &b).expect("the shapes fit").to_host().unwrap().shape(), [0, 3]);
    let (a, b) = (gpu.zeros::<f32, 2>([2, 0]).unwrap(), gpu.zeros::<f32, 2>([0, 3]).unwrap());
    let sums = matmul::on(&gpu, &a, &b).expect("the shapes fit");
    assert_eq!(sums.to_host().unwrap(), Tensor::zeros([2, 3]).unwrap(), "sums of nothing");
}

#[test]
fn tensors_are_updated_in_place() {
    let gpu = open(SOUND);
    let x = gpu.upload(&Tensor::from_fn([77], |[i]| i as i32).unwrap()).expect("it fits");
    let mut sum = gpu.zeros::<i32, 1>([77]).expect("it fits");
    for _ in 0..3 {
        accumulate::on(&gpu, &mut sum, &x, -5).expect("the shapes fit");
    }
    assert_eq!(sum.to_host().unwrap(), Tensor::from_fn([77], |[i]| -15 * i as i32).unwrap());
}

#[test]
fn several_results_and_results_of_the_caller_are_written() {
    let gpu = open(SOUND);
    let x = Tensor::from_fn([41], |[i]| (i % 5) as f32 - 2.0).unwrap();
    let on_gpu = gpu.upload(&x).expect("it fits");
    let (expected, expected_signs) = windows::reference(&x, 4).unwrap();
    let (sums, signs) = windows::on(&gpu, &on_gpu, 4).expect("the shapes fit");
    assert_eq!((sums.to_host().unwrap(), signs.to_host().unwrap()), (expected.clone(), expected_signs));
    let (mut own, mut own_signs) = (gpu.zeros([38]).unwrap(), gpu.zeros([41]).unwrap());
    windows::on_into(&gpu, &on_gpu, 4, &mut own, &mut own_signs).expect("the shapes fit");
    assert_eq!(own.to_host().unwrap(), expected);
    let error = windows::on_into(&gpu, &on_gpu, 3, &mut own, &mut own_signs).expect_err("39 are needed");
    assert!(error.to_string().starts_with("kernel `windows`, argument `y`: dimension 0"), "{error}");
}

#[test]
fn kernels_of_a_type_have_calls_on_devices() {
    let gpu = open(SOUND);
    let x = Tensor::from_fn([9], |[i]| i as f64).unwrap();
    let y = Scaling::scaled_on(&gpu, &gpu.upload(&x).unwrap(), 0.5).expect("the shapes fit");
    assert_eq!(y.to_host().unwrap(), Scaling::scaled_reference(&x, 0.5).unwrap());
    let mut into = gpu.zeros([9]).unwrap();
    Scaling::scaled_on_into(&gpu, &y, 4.0, &mut into).expect("the shapes fit");
    assert_eq!(into.to_host().unwrap(), Scaling::scaled_reference(&x, 2.0).unwrap());
}

/// The results that are kept of a constant tensor are those of its elements now.
#[test]
fn constants_that_are_replaced_are_noticed() {
    let gpu = open(SOUND);
    let x = whole(6, 16, 1);
    let on_gpu = gpu.upload(&x).unwrap();
    let mut w = gpu.upload(&whole(16, 32, 2)).unwrap();
    for seed in [2, 3, 4] {
        let weights = whole(16, 32, seed);
        w.write(&weights).expect("the shape is the same");
        for _ in 0..2 {
            let y = weighted::on(&gpu, &on_gpu, &w).expect("the shapes fit");
            assert_eq!(y.to_host().unwrap(), weighted::reference(&x, &weights).unwrap());
        }
    }
}

#[test]
fn shapes_are_checked_as_on_the_cpu() {
    let gpu = open(SOUND);
    let (a, b) = (whole(3, 4, 0), whole(5, 6, 0));
    let on_cpu = matmul(&a, &b).expect_err("4 is not 5");
    let on_gpu = matmul::on(&gpu, &gpu.upload(&a).unwrap(), &gpu.upload(&b).unwrap()).expect_err("as well");
    assert_eq!(on_gpu.to_string(), on_cpu.to_string());
    let Error::Argument(error) = on_gpu else { panic!("{on_gpu:?}") };
    assert_eq!((error.kernel, error.argument), ("matmul", "b"));
    assert!(matches!(error.problem, ArgumentProblem::Extent { expected: 4, found: 5, .. }));
}

#[test]
fn a_tensor_of_another_device_is_refused_by_its_name() {
    let (gpu, other) = (open(SOUND), open(OTHER));
    let (a, b) = (gpu.upload(&whole(3, 4, 0)).unwrap(), other.upload(&whole(4, 2, 0)).unwrap());
    let error = call_error(matmul::on(&gpu, &a, &b).expect_err("`b` is elsewhere"));
    let CallError::Tensor { name, problem } = &error else { panic!("{error:?}") };
    assert_eq!(name, "b");
    assert!(problem.contains("GPU 1") && problem.contains("GPU 0"), "{problem}");
    let cpu = tilewright::devices::open("cpu").expect("it is there");
    let error = call_error(matmul::on(&cpu, &a, &b).expect_err("both are elsewhere"));
    assert!(error.to_string().contains("`a`"), "{error}");
    assert!(gpu.download(&b).is_err(), "a download names the device that has the tensor");
}

#[test]
fn some_rows_are_arguments_where_they_are_aligned() {
    let gpu = open(SOUND);
    let (a, b) = (whole(9, 4, 0), whole(4, 5, 1));
    let (on_a, on_b) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
    let rows = on_a.view().part(2..7).expect("there are nine");
    let product = matmul::on(&gpu, rows, &on_b).expect("rows of four floats are aligned");
    let some = Tensor::from_fn([5, 4], |[i, j]| a[[i + 2, j]]).unwrap();
    assert_eq!(product.to_host().unwrap(), matmul::reference(&some, &b).unwrap());
    assert_eq!(gpu.download(rows).unwrap(), some);
    assert!(matches!(on_a.view().part(7..10), Err(Error::Shape(_))));
    let odd = gpu.upload(&whole(6, 5, 0)).unwrap();
    let error = matmul::on(&gpu, &on_a, on_b.view().part(0..4).unwrap());
    assert!(error.is_ok(), "all rows begin where the tensor does");
    let rows = odd.view().part(1..5).unwrap();
    let error = call_error(matmul::on(&gpu, &on_a, rows).expect_err("the second row of five is misaligned"));
    let CallError::Tensor { name, problem } = &error else { panic!("{error:?}") };
    assert_eq!(name, "b");
    assert!(problem.contains("no multiple of 16 bytes"), "{problem}");
}

#[test]
fn an_index_out_of_bounds_is_an_error_with_its_place() {
    let gpu = open(SOUND);
    let table = gpu.upload(&whole(10, 3, 0)).unwrap();
    let rows = gpu.upload(&Tensor::from_slice(&[1, 9, 10], [3]).unwrap()).unwrap();
    let error = call_error(gather::on(&gpu, &table, &rows).expect_err("there are ten rows"));
    let CallError::IndexOutOfBounds { value: 10, extent: 10, location: Some(place) } = &error else {
        panic!("{error:?}")
    };
    assert!(place.contains("`table`"), "{place}");
}

#[test]
fn memory_that_is_used_up_is_an_error_and_the_device_goes_on() {
    let gpu = open(SMALL);
    let a = gpu.upload(&whole(64, 64, 0)).expect("a quarter of the memory");
    let error = gpu.zeros::<f32, 2>([200, 200]).expect_err("160 KB do not fit");
    let Error::Device(DeviceError::OutOfMemory { device, bytes: 160_000 }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(device, "GPU 2");
    let (tall, wide) = (gpu.zeros::<f32, 2>([150, 1]).unwrap(), gpu.zeros::<f32, 2>([1, 150]).unwrap());
    let error = call_error(matmul::on(&gpu, &tall, &wide).expect_err("the result does not fit"));
    assert!(matches!(error, CallError::Device(DeviceError::OutOfMemory { .. })), "{error:?}");
    let product = matmul::on(&gpu, &a, &a).expect("it fits");
    assert_eq!(product.to_host().unwrap(), matmul::reference(&whole(64, 64, 0), &whole(64, 64, 0)).unwrap());
}

#[test]
fn a_device_that_is_lost_gives_errors_and_the_host_keeps_its_data() {
    let gpu = open(LOST);
    let (a, b) = (whole(8, 8, 1), whole(8, 8, 2));
    let run = || -> Result<Tensor<f32, 2>, Error> {
        let mut product = gpu.upload(&a)?;
        for _ in 0..9 {
            product = matmul::on(&gpu, &product, &gpu.upload(&b)?)?;
        }
        product.to_host()
    };
    let error = run().expect_err("the GPU is lost after a few launches");
    assert!(
        matches!(error, Error::Device(_) | Error::Call(CallError::Device(_)) | Error::Compile(_)),
        "{error:?}"
    );
    assert!(error.to_string().contains("GPU 3"), "{error}");
    assert_eq!((&a, &b), (&whole(8, 8, 1), &whole(8, 8, 2)));
    assert!(gpu.synchronize().is_err());
    assert_eq!(matmul(&a, &b).expect("the CPU is sound"), matmul::reference(&a, &b).unwrap());
}

#[test]
fn the_cpu_is_a_device_like_any_other() {
    let cpu = tilewright::devices::open("cpu").expect("it is there");
    let (a, b) = (whole(5, 7, 1), whole(7, 3, 2));
    let product = matmul::on(&cpu, &cpu.upload(&a).unwrap(), &cpu.upload(&b).unwrap()).expect("they fit");
    assert_eq!(product.to_host().unwrap(), matmul::reference(&a, &b).unwrap());
}

#[test]
fn devices_are_opened_once_by_their_names() {
    let (gpu, other) = (open(SOUND), open(OTHER));
    assert_eq!(tilewright::devices::open("gpu:0").unwrap(), gpu);
    assert_ne!(gpu, other);
    assert_eq!((gpu.name(), other.name()), ("gpu:0", "gpu:1"));
    let error = tilewright::devices::open("gpu:9").expect_err("there are four");
    assert!(error.to_string().contains("there are 4, with numbers from 0"), "{error}");
    let error = tilewright::devices::open("gpu:first").expect_err("it is no number");
    assert!(error.to_string().contains("as in `gpu:0`"), "{error}");
    let error = tilewright::devices::open("tpu").expect_err("there is none");
    assert!(
        error.to_string().contains("there are: cpu, gpu:") && error.to_string().contains("gpu:NUMBER"),
        "{error}"
    );
}

#[test]
fn threads_share_a_device() {
    let gpu = open(SOUND);
    let (a, b) = (whole(31, 20, 1), whole(20, 13, 2));
    let expected = matmul::reference(&a, &b).unwrap();
    let on_b = gpu.upload(&b).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let product = matmul::on(&gpu, &gpu.upload(&a).unwrap(), &on_b).expect("they fit");
                    assert_eq!(product.to_host().unwrap(), expected);
                }
            });
        }
    });
}
