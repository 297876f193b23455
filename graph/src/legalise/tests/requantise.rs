//! Requantisation by integers: TVM's published cases, and kernels against the evaluation.

use super::*;

const ROUNDINGS: [&str; 3] = ["even", "away", "upward"];

fn requantised(
    sums: HostTensor,
    scales: HostTensor,
    zero: HostTensor,
    rounding: &str,
    axis: i64,
) -> Vec<f64> {
    let operator = operator::find("requantize").unwrap();
    let given = [("rounding", text(rounding)), ("axis", Attribute::Int(axis))];
    let inputs = [sums, scales, zero].map(|tensor| Some(Value::Tensor(tensor)));
    let arguments = Arguments { operator, attributes: &attributes(&given), inputs: &inputs, outputs: 1 };
    let results = (operator.evaluate)(&arguments).unwrap();
    results[0].as_tensor().unwrap().cast(ElementType::F64).unwrap().as_slice::<f64>().unwrap().to_vec()
}

pub(super) fn numbers_of<T: std::str::FromStr>(text: &str) -> Vec<T> {
    text.split([' ', 'x']).map(|word| word.parse().ok().unwrap_or_else(|| panic!("{word}"))).collect()
}

#[test]
fn published_cases_have_their_published_results() {
    let lines = include_str!("requantise.txt").lines().filter(|line| !line.starts_with('#'));
    let mut cases = 0;
    for line in lines {
        let fields: Vec<&str> = line.split("; ").collect();
        let [name, kind, roundings, place, scales, scale, zeros, data, expected] = fields[..] else {
            panic!("{line}")
        };
        let (shape, axis) = place.split_once(' ').unwrap();
        let shape: Vec<usize> = numbers_of(shape);
        let scale: f32 = scale.parse().unwrap();
        let scales: Vec<f32> = numbers_of::<f32>(scales).into_iter().map(|own| own / scale).collect();
        let [of_input, of_result] = numbers_of::<i64>(zeros)[..] else { panic!("{line}") };
        let [first, step] = numbers_of::<i64>(data)[..] else { panic!("{line}") };
        let count: usize = shape.iter().product();
        let data: Vec<i64> = (0..count as i64).map(|place| first + place * step).collect();
        let expected: Vec<f64> = match expected {
            "step" => data.iter().map(|&number| number as f64).collect(),
            "step2" => data.iter().map(|&number| 2.0 * number as f64).collect(),
            "step3" => data.iter().map(|&number| 3.0 * number as f64).collect(),
            "third" => data.iter().map(|&number| (number / 3) as f64).collect(),
            runs => {
                let run = |run: &str| {
                    let (value, times) = run.split_once('*').unwrap();
                    std::iter::repeat_n(value.parse::<f64>().unwrap(), times.parse().unwrap())
                };
                runs.split(' ').flat_map(run).collect()
            }
        };
        let element: ElementType = kind.parse().unwrap();
        for rounding in roundings.split(' ') {
            let sums = data.iter().map(|&number| (number - of_input) as i32).collect();
            let sums = HostTensor::new(&shape, sums).unwrap();
            let zero = HostTensor::scalar(of_result).cast(element).unwrap();
            let scales = HostTensor::vector(scales.clone());
            let found = requantised(sums, scales, zero, rounding, axis.parse().unwrap());
            assert_eq!(found, expected, "{name}, {rounding}");
            cases += 1;
        }
    }
    assert_eq!(cases, 54);
}

#[test]
fn kernels_requantise_by_integers_as_the_evaluation_does() {
    let sums: Vec<i32> =
        vec![0, 1, -1, 3, -3, 5, -5, 7, 1000, -1000, i32::MAX, i32::MIN, 123_456, 16_777_217, -16_777_217, 2];
    let x = || Given(HostTensor::new(&[2, 8], sums.clone()).unwrap(), false);
    for rounding in ROUNDINGS {
        let given = [("rounding", text(rounding))];
        for factor in [0.5f32, 0.25, 1.5, 0.0019, 1e-7, 3e-9, f32::MIN_POSITIVE, 8_388_608.0, 3e30] {
            let scale = || known(HostTensor::scalar(factor));
            both("requantize", &given, &[x(), scale(), known(HostTensor::scalar(128u8))]);
            both("requantize", &given, &[x(), scale(), known(HostTensor::scalar(-7i8))]);
            both("requantize", &given, &[x(), scale(), known(HostTensor::scalar(1000i16))]);
        }
        let scales = HostTensor::vector((1..9).map(|number| number as f32 * 0.01).collect());
        fixed("requantize", &given, &[x(), known(scales.clone()), Given(HostTensor::scalar(0i8), false)]);
        fixed("requantize", &given, &[x(), Given(scales, false), known(HostTensor::scalar(3i8))]);
    }
}

#[test]
fn halves_go_where_the_rounding_says() {
    let halves = || HostTensor::vector(vec![-5, -3, -1, 1, 3, 5]);
    let found = ROUNDINGS.map(|rounding| {
        requantised(halves(), HostTensor::scalar(0.5f32), HostTensor::scalar(0i8), rounding, 0)
    });
    assert_eq!(found[0], [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0]);
    assert_eq!(found[1], [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]);
    assert_eq!(found[2], [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
}
