//! Which figures a result has, and in what order.

use super::evidence_plot::{evidence_plots, probability_plot};
use super::figure::{Figure, NARROW, WIDE};
use super::fit_result::Fit;
use super::graph_plot::{MOST_NODES, graph_plot};
use super::page::Section;
use super::result::{Content, Node, Outcome, Ranking};
use super::sensitivity_plot::sensitivity_plots;
use super::table_plot::{MOST_TABLES, table_plots, title};
use super::trace_plot::{ess_plot, objective_plot};

/// Graphs that are drawn of a comparison of structures.
const MOST_GRAPHS: usize = 4;

/// All parts of a page that have figures.
pub fn sections(outcome: &Outcome) -> Vec<Section> {
    let mut all = match &outcome.content {
        Content::Ranking(ranking) => of_ranking(ranking),
        Content::Fit(fit) => of_fit(fit),
    };
    all.retain(|section| !section.figures.is_empty() || !section.note.is_empty());
    all
}

fn section(heading: &str, note: &str, figures: Vec<Figure>) -> Section {
    Section { heading: heading.into(), note: note.into(), figures, table_of: Vec::new() }
}

fn of_ranking(ranking: &Ranking) -> Vec<Section> {
    let has_evidence = ranking.models.iter().any(|model| model.evidence.is_some());
    vec![
        section(if has_evidence { "Evidence" } else { "Lower bounds" }, "", evidence_plots(ranking)),
        section("Posterior probabilities", "", probability_plot(ranking).into_iter().collect()),
        graphs(ranking),
        section("Sensitivity to the prior", &ranking.movement, sensitivity_plots(ranking)),
        section("Particles", "", ess_plot(&ranking.best().ess, ", best model").into_iter().collect()),
    ]
}

/// The best model's graph, and for a comparison of structures the next ones too.
fn graphs(ranking: &Ranking) -> Section {
    let n_graphs = if ranking.is_select { 1 } else { MOST_GRAPHS };
    let others = ranking.models.iter().enumerate().filter(|(ix, _)| *ix != ranking.best);
    let models = [(ranking.best, ranking.best())].into_iter().chain(others).take(n_graphs);
    let mut figures = Vec::new();
    for (rank, (_, model)) in models.enumerate() {
        let name = if rank == 0 { "graph".to_owned() } else { format!("graph-{}", rank + 1) };
        let title = if rank == 0 { "The best model".to_owned() } else { ranking.label(model) };
        figures.extend(graph(&model.nodes, &name, &title));
    }
    let left_out = figures.is_empty() && !ranking.best().nodes.is_empty();
    section(if n_graphs == 1 { "Graph" } else { "Graphs" }, too_large(left_out), figures)
}

fn too_large(is_left_out: bool) -> &'static str {
    if is_left_out { "The graph is too large to be drawn in a way that could be read." } else { "" }
}

fn graph(nodes: &[Node], name: &str, title: &str) -> Option<Figure> {
    let (wide, narrow) = (graph_plot(nodes, WIDE)?, graph_plot(nodes, NARROW)?);
    let mut caption = "Shaded nodes are seen, plain ones hidden; below each name is its number of values.".to_owned();
    if nodes.iter().any(|node| node.tied_to.is_some()) {
        caption += " Nodes with a dashed line between them share one table.";
    }
    debug_assert!(nodes.len() <= MOST_NODES);
    Some(Figure { name: name.into(), title: title.into(), caption, wide, narrow })
}

fn of_fit(fit: &Fit) -> Vec<Section> {
    let graph: Vec<Figure> = graph(&fit.nodes, "graph", "The model").into_iter().collect();
    let left_out = graph.is_empty() && !fit.nodes.is_empty();
    let mut all = vec![section("Graph", too_large(left_out), graph)];
    for (ix, table) in fit.tables.iter().enumerate().take(MOST_TABLES) {
        let is_hidden = |name: &String| fit.nodes.iter().any(|node| node.name == *name && !node.is_seen);
        let has_components = fit.nodes.is_empty() || table.parents.iter().any(is_hidden);
        let figures = table_plots(table, ix, has_components, fit.method == "vb");
        let table_of = [&table.node].into_iter().chain(&table.tied).chain(&table.parents).cloned().collect();
        all.push(Section { table_of, ..section(&format!("Table of {}", title(table)), "", figures) });
    }
    if fit.tables.len() > MOST_TABLES {
        let more = fit.tables.len() - MOST_TABLES;
        all.push(section("Other tables", &format!("{more} more tables are in the JSON."), Vec::new()));
    }
    let traces = [ess_plot(&fit.ess, ""), objective_plot(&fit.objective.0, &fit.objective_trace)];
    all.push(section("Course of the run", "", traces.into_iter().flatten().collect()));
    all
}
