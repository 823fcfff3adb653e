use super::*;

fn axis(is_logarithmic: bool) -> Axis {
    Axis { label: "x <y>".into(), is_logarithmic }
}

fn ticks(is_logarithmic: bool, values: &[f64]) -> Vec<(f64, String)> {
    Along::of(&axis(is_logarithmic), &values.iter().copied(), 0.0, 100.0).ticks()
}

#[test]
fn marks_are_round_and_where_they_belong() {
    let texts = |all: Vec<(f64, String)>| all.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(
        ticks(false, &[2.0]),
        [
            (0.0, "0.0".to_owned()),
            (25.0, "0.5".to_owned()),
            (50.0, "1.0".to_owned()),
            (75.0, "1.5".to_owned()),
            (100.0, "2.0".to_owned()),
        ]
    );
    assert_eq!(texts(ticks(false, &[10_000.0])), ["0", "2000", "4000", "6000", "8000", "10000"]);
    assert_eq!(texts(ticks(false, &[])), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(texts(ticks(true, &[1e-5, 0.2])), ["1e-5", "1e-4", "0.001", "0.01", "0.1"]);
    // Zero has a place of its own, half a decade before the least.
    let with_zero = ticks(true, &[0.0, 1e-4, 1e-2]);
    let few = ["0", "1e-4", "2e-4", "5e-4", "0.001", "0.002", "0.005", "0.01"];
    assert_eq!(texts(with_zero.clone()), few);
    assert!((with_zero[1].0 - 20.0).abs() < 1e-9 && (with_zero[7].0 - 100.0).abs() < 1e-9, "{with_zero:?}");
}

#[test]
fn points_have_markers_bars_and_what_they_are() {
    let point = |x, y, half| Point { x, y, half };
    let curve = |name: &str, points: Vec<Point>| Curve { name: name.into(), points };
    let curves = vec![
        curve("a & b", vec![point(1e-4, 1.0, 0.0), point(1e-3, 2.0, 0.5), point(1e-2, f64::NAN, 0.0)]),
        curve("c", vec![point(1e-4, 4.0, 0.0)]),
    ];
    let plot = Plot { title: "t".into(), x: axis(true), y: axis(false), curves };
    let svg = plot.svg();
    let count = |part: &str| svg.matches(part).count();
    // One for each point that is a number, and one in the legend.
    assert_eq!((count("mark c0"), count("mark c1")), (3, 2));
    assert_eq!(count("bar c0"), 3, "a bar with two feet");
    assert_eq!(count("<path class=\"curve"), 1, "a line needs two points");
    assert!(svg.contains("a &amp; b") && svg.contains("x &lt;y&gt;") && !svg.contains("NaN"), "{svg}");
    // Twice as much is half way up from the bottom, which is at 326.
    let top = FIELD.y + 6.0;
    let expected = 326.0 - (326.0 - top) * 2.0 / 4.0;
    assert!(svg.contains(&format!("L682.0 {expected:.1}\"")), "{svg}");
}

#[test]
fn a_legend_has_as_many_rows_as_it_takes() {
    let plot = |names: &[&str]| {
        let curves =
            names.iter().map(|&name| Curve { name: name.into(), points: Vec::new() }).collect::<Vec<_>>();
        Plot { title: "t".into(), x: axis(false), y: axis(false), curves }
    };
    let long = "a curve with a name of forty-two letters ..";
    assert_eq!(plot(&["a", "b", "c"]).keys().iter().map(|&(_, y)| y).collect::<Vec<_>>(), [LEGEND; 3]);
    let three = plot(&[long, "b", long]);
    let keys = three.keys();
    assert_eq!((keys[2], keys[1].1), ((FIELD.x, LEGEND + ROW), LEGEND));
    for ((x, _), curve) in keys.iter().zip(&three.curves) {
        assert!(x + KEY + text_width(&curve.name, SIZE) <= WIDTH, "{x}");
    }
    assert!(three.svg().contains("viewBox=\"0 0 720 442\"") && plot(&[]).svg().contains("\"0 0 720 420\""));
}
