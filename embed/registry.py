"""Make an embedder from a model string, or open one that was saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from embed import stored
from embed.corpus import WEIGHTED, check_value_vectors
from embed.protocol import Embedder
from embed.stored import SINGLE, with_precision
from pexeso.errors import EmbedderError, InputError
from pexeso.runtime.extras import require

# Of each kind of a saved model the module and the class that open it.
_CLASSES = {
    **dict.fromkeys(("fasttext", "fasttext-mean", "glove"), ("subword", "SubwordEmbedder")),
    "hashing": ("hashing", "HashingEmbedder"),
    "lexical": ("lexical", "LexicalEmbedder"),
    "sentence": ("sentence", "SentenceEmbedder"),
}

MODEL_FORMS = (
    '"lexical" or "hashing" (no training), "fasttext" (trained on the lake), a path to a fastText '
    ".bin file, a path to word vectors "
    '(.txt or .vec, also .gz), "sentence:NAME_OR_PATH", or a folder saved by an embedder'
)
_SENTENCE = "sentence:"
_TEXT_SUFFIXES = (".txt", ".vec", ".txt.gz", ".vec.gz")


def needs_corpus(model: str) -> bool:
    """Return whether a model string asks for training, so that a corpus must be written first."""
    return model == "fasttext"


def check_model(model: str) -> None:
    """Raise an error if a model string cannot become an embedder.

    No model is read, so that the check can run before long work.
    """
    if model in ("lexical", "hashing", "fasttext") or (
        model.startswith(_SENTENCE) and len(model) > len(_SENTENCE)
    ):
        return
    if model.endswith((".bin", *_TEXT_SUFFIXES)):
        if not Path(model).is_file():
            kind = "fastText model" if model.endswith(".bin") else "file of word vectors"
            raise EmbedderError(f"There is no {kind} at {model}.")
    elif not (Path(model) / stored.DESCRIPTION).is_file():
        raise InputError(f"The model must be {MODEL_FORMS}; got {model!r}.")


def has_value_vectors(model: str) -> bool:
    """Return whether a model makes a value of words in a way that can be chosen."""
    return model == "fasttext" or model.endswith((".bin", *_TEXT_SUFFIXES))


def check_choice(model: str, value_vectors: str | None) -> None:
    """Raise InputError if the words of a model cannot make up a value in this way."""
    if value_vectors is None:
        return
    check_value_vectors(value_vectors)
    if not has_value_vectors(model):
        raise InputError(
            "value_vectors is for fasttext, a fastText .bin file and a file of word vectors. Got "
            f"{value_vectors!r} with the model {model!r}: leave it out."
        )
    if value_vectors == WEIGHTED and model.endswith(_TEXT_SUFFIXES):
        raise InputError(
            f"The file of word vectors {model} does not say how rare words are, so value_vectors "
            f"must be 'mean', its default. Got {value_vectors!r}: leave it out."
        )


def check_choices(models: Iterable[str], value_vectors: str | None) -> None:
    """Raise InputError unless the words of some of the models can make up a value in this way.

    The others have no such choice; see `check_choice`.
    """
    every = list(models)
    for model in [model for model in every if has_value_vectors(model)] or every:
        check_choice(model, value_vectors)


def create_embedder(
    model: str,
    *,
    corpus: str | Path | None = None,
    dimensions: int | None = None,
    value_vectors: str | None = None,
    seed: int = 0,
    distinctions: Sequence[str] = (),
) -> Embedder:
    """Make an embedder.

    Parameters
    ----------
    model : str
        One of the forms in `MODEL_FORMS`.
    corpus : path, optional
        Text to train on, needed for ``"fasttext"``; ``"hashing"`` weighs words by it when it is
        given.
    dimensions : int, optional
        Length of the vectors of ``"fasttext"`` and ``"hashing"``, 100 and 256 if not given. For a
        model that is read it must be the model's own or None.
    value_vectors : {"weighted", "mean"}, optional
        How the words of ``"fasttext"``, of a ``.bin`` file and of a file of word vectors make up a
        value: centred and weighted by rarity, the default of the first two; or the mean of their
        unit vectors, all that the last has.
    seed : int
        Seed of ``"hashing"``.
    distinctions : sequence of str
        For ``"lexical"``: the rules that tell values apart, see ``pexeso rules``; not for others.

    Returns
    -------
    Embedder

    Raises
    ------
    pexeso.errors.InputError
        If the string is none of the forms, or an argument does not suit it.
    pexeso.errors.EmbedderError
        If the model is missing or cannot be read.
    pexeso.errors.MissingPackageError
        If the model needs a package that is not installed.

    Examples
    --------
    >>> create_embedder("hashing", dimensions=50).embed(["oslo", None]).shape
    (2, 50)
    """
    check_choice(model, value_vectors)
    if model == "lexical":
        from embed import lexical

        if dimensions is not None:
            raise InputError("The model 'lexical' has no dimensions: leave them out.")
        return lexical.create(corpus=corpus, distinctions=distinctions)
    if model == "hashing":
        require("torch", "The model 'hashing'")
        from embed import hashing

        chosen = {} if dimensions is None else {"dimensions": dimensions}
        return hashing.create(**chosen, seed=seed, corpus=corpus)
    if model == "fasttext":
        return _train(corpus, dimensions, value_vectors or WEIGHTED)
    embedder = _read(model, value_vectors or WEIGHTED)
    if dimensions is not None and dimensions != embedder.dimensions:
        raise InputError(
            f"The model {model} has {embedder.dimensions} dimensions; got dimensions={dimensions}."
        )
    return embedder


def load_embedder(folder: str | Path, *, verify: bool = False) -> Embedder:
    """Open an embedder that was saved; its arrays are mapped into memory, not read."""
    model = stored.load(Path(folder), verify=verify)
    if model.kind not in _CLASSES:
        raise EmbedderError(f"A model of kind {model.kind!r} is not known to this version.")
    if model.kind != "lexical":
        require("torch", f"The model {model.kind!r}")
    module, name = _CLASSES[model.kind]
    embedder = getattr(import_module(f"embed.{module}"), name).from_stored(model)
    if verify and embedder.recompute_fingerprint() != model.fingerprint:
        raise EmbedderError(
            f"The model in {folder} does not have the fingerprint it was saved with; build the "
            "index again."
        )
    return with_precision(embedder, model.precision or SINGLE)


def _train(corpus: str | Path | None, dimensions: int | None, value_vectors: str) -> Embedder:
    if corpus is None:
        raise InputError("The model 'fasttext' is trained; give the text to train on as corpus.")
    require("torch", "The model 'fasttext'")
    from embed import fasttext

    chosen = {} if dimensions is None else {"dimensions": dimensions}
    return fasttext.train(corpus, fasttext.TrainingOptions(**chosen, value_vectors=value_vectors))


def _read(model: str, value_vectors: str) -> Embedder:
    if model.startswith(_SENTENCE) and len(model) > len(_SENTENCE):
        require("torch", "A sentence model")
        from embed.sentence import load_sentence_model

        return load_sentence_model(model.removeprefix(_SENTENCE))
    if model.endswith(".bin"):
        require("torch", "A fastText model")
        from embed.fasttext import load_binary

        return load_binary(model, value_vectors=value_vectors)
    if model.endswith(_TEXT_SUFFIXES):
        require("torch", "A file of word vectors")
        from embed.glove import load_text

        return load_text(model)
    check_model(model)
    return load_embedder(model)
