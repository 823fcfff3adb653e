use super::*;

#[test]
fn nothing_that_is_shown_can_act() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&<!--";
    let page = Page {
        title: evil.into(),
        lead: vec![evil.into()],
        settings: vec![(evil.into(), evil.into())],
        parts: vec![
            Part::Heading(evil.into()),
            Part::Text(evil.into()),
            Part::Table(Table {
                caption: evil.into(),
                columns: vec![Column::text(evil)],
                rows: vec![vec![Cell::text(evil)]],
            }),
            Part::Figure(Figure {
                title: evil.into(),
                note: evil.into(),
                chart: Chart::Distribution {
                    x: Axis::linear(evil),
                    samples: vec![(evil.into(), vec![1.0, 2.0])],
                },
            }),
        ],
        downloads: vec![Download { name: evil.into(), mime: "text/csv", text: evil.into() }],
        made_by: evil.into(),
    };
    let html = page.html();
    assert!(!html.contains("<img src=x"), "an element that nobody meant");
    // The libraries, the figures, and the page's own.
    assert_eq!(html.matches("</script>").count(), 3);
    for script in [LIBRARIES, SCRIPT] {
        assert!(!script.contains("</script") && !script.contains("<!--"), "it would end its own element");
    }
}

#[test]
fn numbers_have_three_digits() {
    for (value, shown) in [
        (0.0, "0"),
        (54.672_404_6, "54.7"),
        (1_234_567.0, "1234567"),
        (0.001, "0.001"),
        (0.004_641_59, "0.00464"),
        (100.0, "100"),
        (1e-7, "1.00e-7"),
        (-2.5, "-2.5"),
    ] {
        assert_eq!(digits(value), shown);
    }
}

#[test]
fn a_table_is_data_too() {
    let table = Table {
        caption: String::new(),
        columns: vec![Column::text("what, said"), Column::number("s")],
        rows: vec![
            vec![Cell::text("a\"b"), Cell::number(Some(1.0 / 3.0))],
            vec![Cell::text("c"), Cell::number(None)],
        ],
    };
    assert_eq!(table.csv(), "\"what, said\",s\r\n\"a\"\"b\",0.3333333333333333\r\nc,\r\n");
}

#[test]
fn a_unit_stays_with_its_word() {
    let titles = ["time, s", "mean time, ms", "asked again, segments", "plain"];
    let table = Table { columns: titles.map(Column::number).into(), ..Table::default() };
    let html = Page { parts: vec![Part::Table(table)], ..Page::default() }.html();
    for heading in [
        "><span class=\"unit\">time, s</span></button>",
        ">mean <span class=\"unit\">time, ms</span></button>",
        ">asked again, segments</button>",
        ">plain</button>",
    ] {
        assert!(html.contains(heading), "{heading}");
    }
}

#[test]
fn short_names_stand_in_one_line() {
    let columns = |names: &[&str]| chart::legend(names)["columns"].as_u64();
    assert_eq!(columns(&["data", "repairs", "parity", "control"]), Some(4));
    assert_eq!(columns(&["two", "that are not so short as to stand beside one another"]), None);
}

#[test]
fn a_page_without_figures_carries_no_library() {
    let page = Page { title: "plain".into(), ..Page::default() };
    assert!(page.html().len() < 20_000);
}

#[test]
fn a_page_with_figures_is_short() {
    let samples = vec![("a".to_owned(), vec![1.0, 2.0])];
    let chart = Chart::Distribution { x: Axis::linear("s"), samples };
    let figure = Figure { title: "f".into(), note: String::new(), chart };
    let html = Page { parts: vec![Part::Figure(figure)], ..Page::default() }.html();
    assert!(html.len() < 420_000, "{} octets", html.len());
}

#[test]
fn the_libraries_are_those_beside_them() {
    let vendor = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor");
    let unpacked = std::process::Command::new("sh")
        .args(["-c", "base64 -d libraries.gz.base64 | gunzip"])
        .current_dir(&vendor)
        .output()
        .expect("base64 and gunzip");
    let text = ["vega", "vega-lite", "vega-embed"].map(|name| {
        let path = vendor.join(format!("{name}.min.js"));
        std::fs::read_to_string(path).expect("it is vendored") + "\n//next\n"
    });
    assert!(unpacked.stdout == text.concat().as_bytes(), "scripts/vendor-vega --write packs them again");
}
