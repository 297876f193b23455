//! Weights of the places around a coordinate.

/// The cubic convolution kernel (Keys 1981) with parameter `a`, at a distance.
pub(super) fn cubic(distance: f64, a: f64) -> f64 {
    let d = distance.abs();
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}

/// The triangle of linear interpolation, at a distance.
pub(super) fn linear(distance: f64) -> f64 {
    (1.0 - distance.abs()).max(0.0)
}
