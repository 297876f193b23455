//! Convolutions of integers with zero points: TVM's published cases, the evaluation and kernels against the definition.

use super::requantise::numbers_of;
use super::*;

/// One case.
struct Case {
    name: String,
    data: HostTensor,
    weights: HostTensor,
    zeros: [i64; 2],
    pad: i64,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    expected: Option<Vec<i64>>,
}

/// Values with how often each is repeated.
fn runs(text: &str) -> Vec<i64> {
    let run = |run: &str| {
        let (value, times) = run.split_once('*').unwrap();
        std::iter::repeat_n(value.parse::<i64>().unwrap(), times.parse().unwrap())
    };
    text.split(' ').flat_map(run).collect()
}

/// Bytes of a type: given ones, or some that look random and hold both ends.
fn bytes(text: &str, element: &str, shape: &[usize], seed: u32) -> HostTensor {
    let count = shape.iter().product::<usize>() as u32;
    let hash =
        |place: u32| (place + 977 * seed).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(97) >> 24;
    let random = || {
        (0..count)
            .map(|place| [0, 255].get(place as usize).map_or_else(|| i64::from(hash(place)), |&end| end))
    };
    let values: Vec<i64> = match text {
        "random" if element == "i8" => random().map(|byte| byte - 128).collect(),
        "random" => random().collect(),
        given => runs(given),
    };
    HostTensor::new(shape, values).unwrap().cast(element.parse().unwrap()).unwrap()
}

fn case(line: &str) -> Case {
    let fields: Vec<&str> = line.split("; ").collect();
    let [name, types, shapes, zeros, pad, strides, dilations, data, weights, expected] = fields[..] else {
        panic!("{line}")
    };
    let ((of_data, of_weights), (data_shape, shape)) =
        (types.split_once(' ').unwrap(), shapes.split_once(' ').unwrap());
    Case {
        name: name.to_owned(),
        data: bytes(data, of_data, &numbers_of::<usize>(data_shape), 1),
        weights: bytes(weights, of_weights, &numbers_of::<usize>(shape), 2),
        zeros: numbers_of::<i64>(zeros).try_into().unwrap(),
        pad: pad.parse().unwrap(),
        strides: numbers_of(strides),
        dilations: numbers_of(dilations),
        expected: (expected != "definition").then(|| runs(expected)),
    }
}

impl Case {
    /// The sums, each by its definition: of products of integers less their zero points, with zeros around the data.
    fn sums(&self) -> Vec<i64> {
        let whole =
            |tensor: &HostTensor| tensor.cast(ElementType::I64).unwrap().as_slice::<i64>().unwrap().to_vec();
        let (x, w) = (whole(&self.data), whole(&self.weights));
        let (&[batch, channels, height, width], &[filters, _, rows, columns]) =
            (self.data.shape(), self.weights.shape())
        else {
            panic!("{}", self.name)
        };
        let count = |extent: usize, taps: usize, dimension: usize| {
            (extent as i64 + 2 * self.pad - self.dilations[dimension] * (taps as i64 - 1) - 1)
                / self.strides[dimension]
                + 1
        };
        let (down, across) = (count(height, rows, 0), count(width, columns, 1));
        let at = |n: usize, c: usize, y: i64, x_place: i64| {
            let inside = (0..height as i64).contains(&y) && (0..width as i64).contains(&x_place);
            let place = ((n * channels + c) as i64 * height as i64 + y) * width as i64 + x_place;
            if inside { x[place as usize] - self.zeros[0] } else { 0 }
        };
        let mut sums = Vec::new();
        for n in 0..batch {
            for f in 0..filters {
                for (y, x_place) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                    let mut sum = 0;
                    for c in 0..channels {
                        for (r, s) in (0..rows).flat_map(|r| (0..columns).map(move |s| (r, s))) {
                            let weight = w[((f * channels + c) * rows + r) * columns + s] - self.zeros[1];
                            let row = y * self.strides[0] + r as i64 * self.dilations[0] - self.pad;
                            let column = x_place * self.strides[1] + s as i64 * self.dilations[1] - self.pad;
                            sum += at(n, c, row, column) * weight;
                        }
                    }
                    sums.push(sum);
                }
            }
        }
        sums
    }
}

#[test]
fn published_convolutions_have_their_published_results() {
    let lines = include_str!("conv2d.txt").lines().filter(|line| !line.starts_with('#'));
    let operator = operator::find("conv_integer").unwrap();
    let mut cases = 0;
    for case in lines.map(case) {
        let pads = [case.pad; 4];
        let given =
            [("pads", ints(&pads)), ("strides", ints(&case.strides)), ("dilations", ints(&case.dilations))];
        let zero = |tensor: &HostTensor, zero: i64| HostTensor::scalar(zero).cast(tensor.element()).unwrap();
        let zeros = [zero(&case.data, case.zeros[0]), zero(&case.weights, case.zeros[1])];
        let tensors = [case.data.clone(), case.weights.clone(), zeros[0].clone(), zeros[1].clone()];
        let inputs = tensors.map(|tensor| Some(Value::Tensor(tensor)));
        let arguments = Arguments { operator, attributes: &attributes(&given), inputs: &inputs, outputs: 1 };
        let results = (operator.evaluate)(&arguments).unwrap();
        let found = results[0].as_tensor().unwrap().cast(ElementType::I64).unwrap();
        let sums = case.sums();
        assert_eq!(found.as_slice::<i64>().unwrap(), sums, "{}", case.name);
        if let Some(expected) = &case.expected {
            assert_eq!(&sums, expected, "{}", case.name);
        }
        // The kernel computes what the evaluation does; the interpreter of kernels is slow.
        if sums.len() * case.weights.len() < 1 << 20 {
            let [of_data, of_weights] = zeros;
            fixed(
                "conv_integer",
                &given,
                &[Given(case.data, false), known(case.weights), known(of_data), known(of_weights)],
            );
        }
        cases += 1;
    }
    assert_eq!(cases, 19);
}
