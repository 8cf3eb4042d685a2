//! Files in many formats, as they are read from the command line.

use crate::support::Folder;

/// Two documents of three words, as a table.
const TABLE: &str = "doc,word,count\n1,cat,5\n1,owl,1\n2,dog,2\n";

#[test]
fn bags_of_words_find_their_words_and_score_as_a_table_does() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("docword.t.txt", "2\n3\n3\n1 1 5\n1 3 1\n2 2 2\n");
    folder.write("vocab.t.txt", "cat\ndog\nowl\n");
    folder.write("t.ldac", "2 0:5 2:1\n1 1:2\n");
    let scored = |data: &str| folder.json(&["score", "--model", "lda(2)", "--data", data])["log_marginal"].clone();
    for data in ["docword.t.txt", "t.ldac"] {
        assert_eq!(scored(data), scored("t.csv"), "{data}");
        let summary = folder.json(&["check", data]);
        assert_eq!(summary["columns"][1]["most_common"][0]["label"], "cat", "{data}");
    }
    // Words of a fit are known by their names in files without numbers.
    folder.ok(&["fit", "--model", "lda(2)", "--data", "t.ldac", "--method", "vb", "--seed", "1", "-o", "t.polyurn"]);
    let predicted = |data: &str| folder.ok(&["predict", "--fit", "t.polyurn", "--data", data, "-q"]);
    assert_eq!(predicted("docword.t.txt"), predicted("t.csv"));
}

#[test]
fn a_vocabulary_is_refused_where_it_does_not_belong() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("t.ldac", "2 0:5 2:1\n1 1:2\n");
    folder.write("words", "cat\n");
    let refused = |args: &[&str]| folder.fails(args).1;
    let message = refused(&["check", "t.csv", "--vocab", "words"]);
    assert!(message.contains("--vocab words: a file of format csv takes no vocabulary"), "{message}");
    let message = refused(&["check", "t.ldac", "--vocab", "words"]);
    assert!(message.contains("t.ldac, line 1: entry 2, `2:1`: index `2` is beyond 0"), "{message}");
    let message = refused(&["check", "t.ldac", "--vocab", "none"]);
    assert!(message.contains("none: "), "{message}");
}
