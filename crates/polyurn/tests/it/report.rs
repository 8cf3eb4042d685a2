//! Reports: whatever the JSON holds, a page that is bounded, well formed and harmless, or one line that says what is wrong.

use polyurn::report::Report;
use proptest::prelude::*;
use serde_json::{Value, json};

const FIXTURES: [&str; 3] = [
    include_str!("../../../polyurn-cli/tests/fixtures/select.json"),
    include_str!("../../../polyurn-cli/tests/fixtures/select-two.json"),
    include_str!("../../../polyurn-cli/tests/fixtures/compare.json"),
];
const HOSTILE: [&str; 4] =
    ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "=cmd()", "a & b ' \u{1} \u{202e}"];

fn fit() -> Value {
    let row = |topic: &str| json!({ "given": {"topic": topic}, "values": ["a", "b", "c"], "mean": [0.5, 0.3, 0.2], "sd": [0.1, 0.1, 0.05] });
    json!({
        "command": "fit", "method": "smc", "objective": -10.5, "std_error": 0.1, "model": "topic[2] -> word",
        "data": {"file": "x.csv", "tokens": 9, "records": 3, "columns": ["word"]},
        "nodes": [
            {"name": "topic", "size": 2, "seen": false, "parents": []},
            {"name": "word", "size": 3, "seen": true, "parents": ["topic"]},
        ],
        "tables": [
            {"node": "topic", "tied": [], "rows": [{"given": {}, "values": ["0", "1"], "mean": [0.6, 0.4], "sd": [0.1, 0.1]}]},
            {"node": "word", "tied": [], "rows": [row("0"), row("1")]},
        ],
        "particles": 100, "ess": 0.5, "ess_trace": [[1, 90.0], [5, 40.0], [9, 70.0]], "resampled_at": [5],
        "objective_trace": [-12.0, -11.0, -10.5], "seed": 1, "seconds": 0.1, "command_line": ["polyurn", "fit"],
        "warnings": [{"kind": "labels_of_one_run", "message": "labels are those of run 1"}], "version": "0.1.0",
    })
}

fn all() -> Vec<Value> {
    FIXTURES.iter().map(|text| serde_json::from_str(text).unwrap()).chain([fit()]).collect()
}

/// Calls `f` with every value inside a value.
fn visit(value: &mut Value, f: &mut dyn FnMut(&mut Value)) {
    f(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, f)),
        Value::Object(fields) => fields.values_mut().for_each(|item| visit(item, f)),
        _ => {}
    }
}

/// Tags that open and close in order, attributes in quotes, no stray `<` or `&`: what XML asks of these files.
fn check_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg.trim();
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag that ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closing tags match");
            continue;
        }
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert!(attributes.matches('"').count().is_multiple_of(2) && !attributes.contains('<'), "{attributes}");
        attributes.split('"').skip(1).step_by(2).for_each(check_text);
        if !is_empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
}

fn check_text(text: &str) {
    for entity in text.split('&').skip(1) {
        let name = entity.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name}");
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "control characters");
}

#[test]
fn plots_of_every_kind_are_well_formed_and_have_names_of_their_own() {
    let wanted: [&[&str]; 4] = [
        &["evidence", "evidence-near-best", "probability", "graph", "sensitivity-probability", "effective-particles"],
        &["evidence-by-size", "evidence", "evidence-near-best", "graph"],
        &["evidence", "evidence-near-best", "probability", "graph", "graph-2"],
        &["graph", "entries-1-topic", "entries-2-word", "table-2-word", "effective-particles", "objective"],
    ];
    for (value, wanted) in all().iter().zip(wanted) {
        let plots = Report::from_json(value).unwrap().plots();
        let mut names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        wanted.iter().for_each(|name| assert!(names.contains(name), "{name} is missing from {names:?}"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plots.len());
        for (_, svg) in &plots {
            check_well_formed(svg);
            assert!(svg.contains("#ffffff") && !svg.contains("var("));
        }
    }
}

#[test]
fn the_lower_bound_is_never_called_evidence() {
    let mut value: Value = serde_json::from_str(FIXTURES[0]).unwrap();
    for model in value["models"].as_array_mut().unwrap() {
        model["bound"] = json!("lower");
        model["method"] = json!("vb");
        model["elbo"] = Value::Null;
    }
    let (_, svg) = Report::from_json(&value).unwrap().plots().into_iter().find(|(name, _)| name == "evidence").unwrap();
    assert!(svg.contains("lower bound (ELBO)") && !svg.contains("ln evidence"), "{svg}");
}

/// As the table on a terminal and the verdict have them, whatever the order in the JSON.
#[test]
fn sizes_stand_in_the_order_of_the_model() {
    let node = |name: &str| json!({"name": name, "size": 2, "seen": false, "parents": []});
    let model = |near: u32, far: u32| {
        json!({
            "model": "m", "sizes": {"far": far, "near": near, "other": 5}, "log_marginal": -f64::from(far), "posterior_probability": 0.5,
            "nodes": [node("near"), node("other"), node("far")],
        })
    };
    let models = [model(2, 1), model(3, 2)];
    let value = json!({ "command": "select", "models": models, "verdict": "(near = 2, far = 1) is best." });
    let html = Report::from_json(&value).unwrap().html();
    assert!(html.contains("near = 2, far = 1</td>") && !html.contains("far = 1, near = 2"), "{html}");
    // A size that all models have tells none of them from the others.
    assert!(!html.contains("other = 5"), "{html}");
}

/// As annealing leaves it: bounds on either side, and no trace of particles.
fn bracketed(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for model in value["models"].as_array_mut().unwrap() {
        let Some(evidence) = model["log_marginal"].as_f64() else { continue };
        let fields = model.as_object_mut().unwrap();
        fields.retain(|name, _| name != "ess_trace" && name != "resampled_at");
        fields.extend([
            ("method".into(), json!("anneal")),
            ("bound".into(), json!("bracket")),
            ("std_error".into(), json!(0.25)),
            ("lower".into(), json!(evidence - 3.5)),
            ("upper".into(), json!(evidence + 4.25)),
            ("bracket_error".into(), json!(0.025)),
            ("bracket_rests_on".into(), json!("the upper one rests on a chain")),
        ]);
    }
    value
}

#[test]
fn brackets_are_drawn_behind_error_bars_told_and_listed() {
    for text in [FIXTURES[0], FIXTURES[1], FIXTURES[2]] {
        let value = bracketed(text);
        let report = Report::from_json(&value).unwrap();
        let plots = report.plots();
        for (name, svg) in plots.iter().filter(|(name, _)| name.starts_with("evidence") && name != "evidence-by-size") {
            check_well_formed(svg);
            assert!(svg.contains(">bracket</text>"), "{name} has no legend of brackets");
            assert!(svg.contains("at least −") && svg.contains("at most −"), "{name}: {svg}");
        }
        let html = report.html();
        assert!(html.contains("<th scope=\"col\">at least</th><th scope=\"col\">at most</th>"), "{html}");
        let what = "at least their lower end and at most their upper one, each with a probability of 97.5 %; the upper one rests \
                    on a chain.";
        assert!(html.contains(what), "{html}");
        // Annealing has no trace of particles: nothing of the kind is shown, empty or not.
        assert!(!html.contains("<h2>Particles</h2>") && !html.contains("effective-particles"));
    }
}

/// An error bar is one standard error to each side, whatever the bracket.
#[test]
fn a_bracket_does_not_take_the_place_of_the_error_bar() {
    let plot = |value: &Value| Report::from_json(value).unwrap().plots().swap_remove(0).1;
    let value = bracketed(FIXTURES[0]);
    let mut bare = value.clone();
    for model in bare["models"].as_array_mut().unwrap() {
        (model["lower"], model["upper"]) = (Value::Null, Value::Null);
    }
    let n_lines = |svg: &str| svg.matches("<path d=\"M").count();
    // A line and two caps for each model, and for the legend.
    let n_models = value["models"].as_array().unwrap().len();
    assert!(n_lines(&plot(&value)) >= n_lines(&plot(&bare)) + 3 * n_models);
    assert!(!plot(&bare).contains("bracket"));
}

#[test]
fn where_labels_come_from_is_said_beside_the_tables() {
    let html = Report::from_json(&fit()).unwrap().html();
    assert_eq!(html.matches("Labels are those of run 1.").count(), 2, "at the top and beside the first table");
}

#[test]
fn labels_are_harmless_wherever_they_stand() {
    for value in all() {
        for hostile in HOSTILE {
            let mut value = value.clone();
            visit(&mut value, &mut |value| match value {
                // Words that say what kind of result it is stay.
                Value::String(text)
                    if !["select", "compare", "fit", "-inf", "smc", "lower"].contains(&text.as_str()) =>
                {
                    text.insert_str(0, hostile);
                }
                Value::Object(fields) if fields.contains_key("topic") || fields.contains_key("class") => {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(name, value)| (format!("{hostile}{name}"), value))
                        .collect();
                }
                _ => {}
            });
            let report = Report::from_json(&value).unwrap().with_title(hostile);
            let html = report.html();
            assert_eq!(html.matches("<script").count(), 1, "only our own script");
            assert!(!html.contains("<img") && !html.contains("onerror=alert(1)>\""));
            for (name, svg) in report.plots() {
                check_well_formed(&svg);
                assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
            }
        }
    }
}

#[test]
fn a_page_asks_for_nothing_and_runs_nothing_else() {
    for value in all() {
        let html = Report::from_json(&value).unwrap().html();
        assert!(html.contains("default-src 'none'; style-src 'sha256-") && html.contains("script-src 'sha256-"));
        for forbidden in ["http://", "https://", " style=", " onclick=", " onload=", "@import", "url("] {
            let found = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(forbidden), "{forbidden}");
        }
    }
}

#[test]
fn what_is_no_result_is_refused_in_one_line() {
    for (value, words) in [
        (json!(null), "found nothing"),
        (json!([1]), "found a list"),
        (json!({}), "neither"),
        (json!({"log_marginal": -3.0}), "neither"),
        (json!({"models": 3}), "neither"),
        (json!({"models": []}), "empty"),
        (json!({"models": [1]}), "models[0]"),
        (json!({"models": [{"log_marginal": "much"}]}), "models[0].log_marginal"),
        (json!({"models": [{"model": "x"}]}), "models[0]: neither log_marginal nor elbo"),
        (json!({"tables": [{}]}), "tables[0].rows"),
        (json!({"tables": [{"rows": [{"values": ["a"], "mean": []}]}]}), "tables[0].rows[0]"),
    ] {
        let error = Report::from_json(&value).unwrap_err().to_string();
        assert!(error.contains(words) && error.lines().count() == 1, "{value}: {error}");
    }
    // Little is still something.
    let one = json!({"models": [{"log_marginal": "-inf"}]});
    for value in [one, json!({"tables": []}), json!({"tables": [{"rows": [{}]}]})] {
        assert!(Report::from_json(&value).unwrap().html().ends_with("</html>\n"));
    }
}

#[test]
fn thirty_sizes_and_five_thousand_words_stay_below_three_megabytes() {
    let words: Vec<String> = (0..5000).map(|ix| format!("a word of the vocabulary {ix}")).collect();
    let row = |name: &str, ix: usize, values: &[String]| {
        let means: Vec<f64> =
            (0..values.len()).map(|cell| 1.0 / (1 + (cell * 7919 + ix * 104_729) % 5000) as f64).collect();
        json!({ "given": {name: ix.to_string()}, "values": values, "mean": means, "sd": means })
    };
    let topics: Vec<String> = (0..30).map(|ix| ix.to_string()).collect();
    let mut value = fit();
    value["tables"] = json!([
        {"node": "word", "rows": (0..30).map(|ix| row("topic", ix, &words)).collect::<Vec<_>>()},
        {"node": "topic", "rows": (0..2000).map(|ix| row("doc", ix, &topics)).collect::<Vec<_>>()},
        {"node": "other", "rows": (0..30).map(|ix| row("topic", ix, &words)).collect::<Vec<_>>()},
        {"node": "third", "rows": (0..30).map(|ix| row("topic", ix, &words)).collect::<Vec<_>>()},
    ]);
    value["ess_trace"] = (0..20_000).map(|ix| json!([ix, ix % 100])).collect();
    value["resampled_at"] = (0..20_000).collect();
    let html = Report::from_json(&value).unwrap().html();
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("largest of 5000 values") && html.contains("of largest weight of 5000"));

    let mut value: Value = serde_json::from_str(FIXTURES[0]).unwrap();
    let model = value["models"][0].clone();
    let models = (1..=30).map(|size| {
        let mut model = model.clone();
        model["sizes"] = json!({ "class": size });
        model["log_marginal"] = json!(-50.0 - f64::from(size));
        model
    });
    value["models"] = models.collect();
    let html = Report::from_json(&value).unwrap().html();
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

/// JSON of any shape.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(1e308), Just(-1e308), Just(5e-324), Just(0.0), Just(-1.0)].prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop_oneof![Just("-inf"), Just("NaN"), Just("lower"), Just("<b>"), Just("")].prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("models|tables|rows|mean|.{0,5}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_in_the_json_makes_a_report_panic(
        which in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), anything()), 1..6),
    ) {
        let mut value = all().swap_remove(which);
        for (place, new) in changes {
            let mut n = 0;
            visit(&mut value, &mut |_| n += 1);
            let (mut ix, chosen) = (0, place.index(n));
            visit(&mut value, &mut |value| {
                if ix == chosen {
                    *value = new.clone();
                }
                ix += 1;
            });
        }
        if let Ok(report) = Report::from_json(&value) {
            prop_assert!(report.html().ends_with("</html>\n"));
            report.plots().iter().for_each(|(_, svg)| check_well_formed(svg));
        }
    }

    #[test]
    fn no_json_at_all_makes_a_report_panic(value in anything()) {
        let _ = Report::from_json(&value).map(|report| report.html());
    }
}

/// Sizes of which no more than a bound is known have no place on the line of the evidence, and it does not pass over them.
#[test]
fn a_line_is_broken_where_only_a_bound_is_known() {
    let model = |size: u32, bound: &str, is_lower: bool| {
        let ln = -50.0 - f64::from(size);
        json!({ "model": format!("k[{size}] -> i"), "sizes": {"k": size}, "log_marginal": ln, "bound": bound, "elbo": ln - 2.0,
            "is_lower_bound": is_lower, "log_bayes_factor": ln + 51.0, "posterior_probability": 0.0 })
    };
    let models = [
        model(1, "exact", false),
        model(2, "exact", false),
        model(3, "lower", true),
        model(4, "estimate", true),
        model(5, "estimate", false),
    ];
    let value = json!({ "command": "select", "models": models, "best": {"index": 0}, "verdict": "" });
    let report = Report::from_json(&value).unwrap();
    let (_, svg) = report.plots().into_iter().find(|(name, _)| name == "evidence").unwrap();
    // The bound over all five sizes, the evidence over the first two alone.
    let lines = svg.split("<path d=\"M").skip(1).filter(|path| path.contains("fill=\"none\" stroke"));
    let corners: Vec<usize> = lines.map(|path| path.split('"').next().unwrap().split('L').count()).collect();
    assert_eq!(corners, [5, 2], "{svg}");
    let page = report.html();
    assert!(page.contains("<td>≥ −55.00</td>") && page.contains("<td>−4.00</td>"), "{page}");
}

/// What is doubtful about the runner-up is doubtful about the lead.
#[test]
fn cautions_about_the_best_and_the_next_are_shown_with_their_names() {
    let model = |size: u32| {
        let warning = json!({ "kind": "runs_disagree", "message": format!("runs of {size} scatter") });
        json!({ "model": format!("k[{size}] -> i"), "sizes": {"k": size}, "log_marginal": -f64::from(size), "warnings": [warning] })
    };
    let models: Vec<Value> = (2..6).map(model).collect();
    let value = json!({ "command": "select", "models": models, "best": {"index": 0}, "level": [0], "verdict": "" });
    let page = Report::from_json(&value).unwrap().html();
    assert!(page.contains("Runs of 2 scatter (k = 2).") && page.contains("Runs of 3 scatter (k = 3)."), "{page}");
    assert!(!page.contains("Runs of 4 scatter"), "{page}");
}

/// The text of a page without its script and style.
fn page(value: &Value) -> String {
    let html = Report::from_json(value).unwrap().html();
    html.split("</style>").nth(1).unwrap().split("<script>").next().unwrap().to_owned()
}

fn bound(model: &str, elbo: f64) -> Value {
    json!({ "model": model, "log_marginal": elbo, "elbo": elbo, "bound": "lower", "is_lower_bound": true,
        "posterior_probability": null, "posterior_probability_error": null, "log_bayes_factor": null, "sizes": {} })
}

#[test]
fn bounds_alone_are_called_bounds_in_captions_and_in_the_table() {
    let models = [bound("a -> b", -10.0), bound("a; b", -12.5)];
    let page = page(&json!({ "command": "compare", "models": models, "settled": false }));
    assert!(page.contains("<h2>Lower bounds</h2>") && page.contains("which is not evidence"), "{page}");
    assert!(!page.contains("the number is exact") && !page.contains("Evidence of each model"));
    assert!(page.contains("<th scope=\"col\">below the best</th>") && page.contains("<td>2.50</td>"), "{page}");
    assert!(
        !page.contains("<th scope=\"col\">probability</th>") && !page.contains("<th scope=\"col\">ln evidence</th>")
    );
}

#[test]
fn the_legend_near_the_best_names_what_is_drawn() {
    let model = |ix: u32, elbo: f64| {
        json!({ "model": format!("m{ix}"), "log_marginal": -10.0 - f64::from(ix), "elbo": elbo, "std_error": 0.1,
            "bound": "estimate", "posterior_probability": 0.5, "sizes": {} })
    };
    let near = |elbo: f64| {
        let value = json!({ "command": "compare", "models": [model(0, -90.0), model(1, elbo), model(2, -80.0)] });
        Report::from_json(&value).unwrap().plots().into_iter().find(|(name, _)| name == "evidence-near-best").unwrap().1
    };
    assert!(!near(-70.0).contains(">lower bound (ELBO)<"), "{}", near(-70.0));
    assert!(near(-11.5).contains(">lower bound (ELBO)<"), "{}", near(-11.5));
}

/// The lowest of three models is 1,000 nats down: 20 nats look like none there, 40 do not.
#[test]
fn models_that_look_level_though_they_are_well_apart_are_shown_on_a_finer_scale() {
    let has_finer_scale = |second: f64| {
        let model = |ln: f64| json!({ "model": format!("m{ln}"), "log_marginal": ln, "std_error": 0.1, "sizes": {} });
        let value = json!({ "command": "compare", "models": [model(0.0), model(second), model(-1000.0)] });
        Report::from_json(&value).unwrap().plots().iter().any(|(name, _)| name == "evidence-near-best")
    };
    assert!(has_finer_scale(-20.0) && !has_finer_scale(-40.0));
}

#[test]
fn a_bound_among_evidences_is_marked_as_one() {
    let sized = |mut model: Value, (x, y): (u32, u32)| {
        model["sizes"] = json!({ "x": x, "y": y });
        model
    };
    let evidence = |ln: f64| {
        json!({ "model": "m", "log_marginal": ln, "elbo": ln - 3.0, "std_error": 0.2, "bound": "estimate",
            "posterior_probability": 0.5, "posterior_probability_error": 0.0125, "log_bayes_factor": ln + 10.0 })
    };
    let models = [
        sized(evidence(-10.0), (1, 1)),
        sized(evidence(-11.0), (1, 2)),
        sized(evidence(-12.0), (2, 1)),
        sized(bound("m", -40.0), (2, 2)),
    ];
    let result = json!({
        "command": "select", "models": models, "interrupted": true, "level": [0, 1, 2], "left_with_bound": ["Left with a lower bound: x = 2."],
    });
    let report = Report::from_json(&result).unwrap();
    let map = &report.plots().into_iter().find(|(name, _)| name == "evidence-by-size").unwrap().1;
    assert!(map.contains(">≥ −30.0<"), "{map}");
    let page = page(&result);
    assert!(page.contains("with ≥, of the lower bound (ELBO) alone, which is not evidence"), "{page}");
    assert!(page.contains("Hollow diamonds are the lower bound (ELBO), which is not evidence"), "{page}");
    assert!(page.contains("<td>≥ −40.00</td>") && page.matches("<td>–</td>").count() == 2, "{page}");
    assert!(page.contains("The run was interrupted") && page.contains("Left with a lower bound: x = 2."));
    assert!(page.contains("One model has no bar, since no more than its lower bound (ELBO) is known."), "{page}");
    assert!(page.contains("<code>(x = 1, y = 2)</code>, <code>(x = 2, y = 1)</code>"), "{page}");
    // The same digits in the table, in the plot and where a pointer rests.
    assert!(page.matches("50.00 ± 1.25 %").count() >= 3 * 3, "{page}");
}

#[test]
fn spreads_of_a_bound_and_steps_of_cooling_are_explained_where_they_are() {
    let mut value = fit();
    let small = "Those of variational Bayes are often too small";
    assert!(!page(&value).contains(small));
    assert!(page(&value).contains("larger pseudo-counts are brought down"));
    value["heat"] = json!(1.0);
    value["cooling"] = json!(0);
    assert!(!page(&value).contains("larger pseudo-counts are brought down"));
    value["method"] = json!("vb");
    assert!(page(&value).contains(small));
}
