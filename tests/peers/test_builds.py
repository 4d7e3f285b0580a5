"""Words of builds: their names, their labels, and what is refused."""

from dataclasses import asdict

import pytest

from kvbench.errors import BadArgument
from kvbench.peers.builds import Build, builds, engine_of, labels
from kvbench.session.options import Options

LABELS = [  # paths, and what tells them apart
    ((), []),
    (("/a/ggml.so",), [""]),
    (("/a/old.so", "/a/new.so.1"), ["old", "new"]),
    (("/a/ggml.so", "/b/ggml.so"), ["a", "b"]),
    (("/a/build/ggml.so", "/b/build/ggml.so"), ["a", "b"]),
    (("/a/x y.so", "/a/x@y.so", "/a/z.so"), None),
    (("/a b/ggml.so", "/c/ggml.so"), ["a-b", "c"]),
    (("/v1.2/ggml.so", "/v1.3/ggml.so"), ["v1.2", "v1.3"]),
    (("/a/ggml.so", "/a/ggml.so"), None),
]
WORDS = [  # engines, libraries, interpreters; and the builds
    (["ggml", "numpy"], [], [], {"ggml": Build(), "numpy": Build()}),
    (["ggml"], ["ggml=/x.so"], [], {"ggml": Build("/x.so")}),
    (
        ["ggml", "numpy"],
        ["ggml=/old.so", "ggml=/new.so"],
        [],
        {"ggml@old": Build("/old.so"), "ggml@new": Build("/new.so"), "numpy": Build()},
    ),
    (["ggml"], ["ggml@mine=/x.so"], [], {"ggml@mine": Build("/x.so")}),
    (["vllm"], [], ["vllm=/v/bin/python"], {"vllm": Build("", "/v/bin/python")}),
    (
        ["vllm"],
        [],
        ["vllm=/1/bin/python", "vllm=/2/bin/python"],
        {"vllm@1": Build("", "/1/bin/python"), "vllm@2": Build("", "/2/bin/python")},
    ),
    (
        ["ggml"],
        ["ggml@a=/a.so", "ggml@b=/b.so"],
        ["ggml=/python"],
        {"ggml@a": Build("/a.so", "/python"), "ggml@b": Build("/b.so", "/python")},
    ),
    (
        ["ggml"],
        ["ggml@a=/a.so", "ggml@b=/b.so"],
        ["ggml@a=/p", "ggml@b=/q"],
        {"ggml@a": Build("/a.so", "/p"), "ggml@b": Build("/b.so", "/q")},
    ),
]
REFUSED = [  # libraries, interpreters; and what is said
    (["ggml"], [], "'ggml' names no library"),
    (["ggml="], [], "names no library"),
    (["=/x.so"], [], "names no library"),
    ([], ["vllm"], "'vllm' names no interpreter"),
    (["ggml=/x.so", "ggml=/x.so"], [], "nothing tells these builds apart: /x.so, /x.so"),
    (["ggml@a=/x.so", "ggml@a=/y.so"], [], "two builds share a label"),
    (["numpy=/x.so"], [], "numpy is left out"),
    ([], ["numpy=/x"], "numpy is left out"),
    (["ggml@a=/x.so", "ggml@b=/y.so"], ["ggml@a=/p", "ggml@c=/q"], "several interpreters"),
]


@pytest.mark.parametrize(("paths", "found"), LABELS)
def test_labels(paths, found):
    if found is None:
        with pytest.raises(BadArgument, match="nothing tells these builds apart"):
            labels(paths)
    else:
        assert labels(paths) == found


@pytest.mark.parametrize(("engines", "paths", "pythons", "found"), WORDS)
def test_builds(engines, paths, pythons, found):
    made = builds(engines, paths, pythons)
    assert made == found and list(made) == list(found)
    assert {engine_of(word) for word in made} == {*engines}


@pytest.mark.parametrize(("paths", "pythons", "said"), REFUSED)
def test_what_is_refused(paths, pythons, said):
    with pytest.raises(BadArgument, match=said):
        builds(["ggml", "vllm"], paths, pythons)


def test_options_are_kept_and_resumed_from_another_folder(tmp_path, monkeypatch):
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    begun = Options(
        "peers", peers=("numpy", "ggml=old.so", "ggml=new.so"), pythons=("numpy=bin/python",)
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    kept = Options.kept(asdict(begun), "a run")
    assert kept == begun == kept.resumed({}, "a run")
    assert kept.builds == {
        "numpy": Build("", str(tmp_path / "here/bin/python")),
        "ggml@old": Build(str(tmp_path / "here/old.so")),
        "ggml@new": Build(str(tmp_path / "here/new.so")),
    }
