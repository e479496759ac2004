"""The names of calls that open files, in the libraries that notebooks use.

A name stands alone where it means the same in every library, else with the module that it is imported from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PLAIN_OPEN: Final = frozenset({"open", "io.open", "codecs.open"})
MODES: Final = frozenset({
    "bz2.open", "gzip.GzipFile", "gzip.open", "h5py.File", "lzma.open", "tarfile.open", "tarfile.TarFile.open",
    "zipfile.ZipFile", "soundfile.SoundFile", "smart_open.open", "netCDF4.Dataset", "zarr.open",
})  # fmt: skip
"""Functions with a mode as second argument, as `open`."""
SURE: Final = frozenset({
    "PIL.Image.open", "configparser.read", "cv2.VideoCapture", "cv2.imread", "datasets.load_from_disk",
    "joblib.load", "librosa.load", "numpy.fromfile", "numpy.genfromtxt", "numpy.load", "numpy.loadtxt", "onnx.load",
    "runpy.run_path", "safetensors.torch.load_file", "scipy.io.loadmat", "scipy.io.wavfile.read", "soundfile.read",
    "torch.jit.load", "torch.load", "torchaudio.load", "torchvision.io.read_image", "onnxruntime.InferenceSession",
})  # fmt: skip
READS: Final = frozenset({
    "DMatrix", "FixedLengthRecordDataset", "GFile", "InferenceSession", "LineSentence", "Pool",
    "TFRecordDataset", "TextLineDataset", "VideoCapture", "YOLO", "create_engine", "dcmread", "imread", "iglob",
    "glob", "run_path", "safe_open", "unpack_archive", "parse", "copy", "copy2", "copyfile", "create_from_file",
    "load", "open",
})  # fmt: skip
READ_VERBS: Final = re.compile(
    r"(?:load|open|read|scan|import)_\w+|from_(?:file|disk|csv|json|pretrained)\w*|read|.*_from_file"
)
NOT_FILES: Final = re.compile(
    r"(?:load|open|read)_(?:dataset_builder|state_dict|clipboard|sql\w*|gbq|iris|digits|wine|diabetes|breast_cancer)"
)
PATH_READS: Final = frozenset({"read_bytes", "read_text"})
PATH_LISTS: Final = frozenset({"iterdir", "walk"})
PATH_CHECKS: Final = frozenset({"exists", "is_dir", "is_file", "lstat", "stat"})
PATH_WRITES: Final = frozenset({"touch", "write_bytes", "write_text"})
FOLDERS: Final = frozenset({
    "DatasetFolder", "ImageFolder", "audio_dataset_from_directory", "chdir", "copytree", "flow_from_directory",
    "image_dataset_from_directory", "listdir", "scandir", "text_dataset_from_directory", "walk", "fwalk",
    "make_archive",
})  # fmt: skip
TAKES_FOLDERS: Final = frozenset({
    "from_disk", "from_pretrained", "load", "load_dataset", "load_from_disk", "load_model", "open_zarr",
    "read_parquet", "scan_parquet", "load_weights", "run_path",
})  # fmt: skip
PREFIXES: Final = frozenset({"load_weights", "load_checkpoint", "restore"})
CHECKS: Final = frozenset({
    "os.access", "os.path.exists", "os.path.getmtime", "os.path.getsize", "os.path.isdir", "os.path.isfile",
    "os.stat",
})  # fmt: skip
REMOVES: Final = frozenset({"remove", "rmdir", "rmtree", "unlink"})
MAKES: Final = frozenset({"makedirs", "mkdir"})
PATH_METHODS: Final = PATH_READS | PATH_LISTS | PATH_CHECKS | PATH_WRITES | MAKES | {"glob", "open", "rglob"}
SECOND_WRITTEN: Final = frozenset({
    "joblib.dump", "save_file", "save_image", "save_model", "saved_model.save", "torch.jit.save", "torch.save",
    "copy", "copy2", "copyfile", "copytree", "move", "rename", "replace", "write_image",
})  # fmt: skip
WRITE_VERBS: Final = re.compile(
    r"to_(?:csv|excel|feather|hdf|html|json|parquet|pickle|stata|latex|markdown|file|disk|netcdf)"
    r"|save\w*|imwrite|imsave|export\w*|write_\w+|write|tofile|dump"
)
FIRST_WRITTEN: Final = frozenset({
    "CSVLogger", "ExcelWriter", "FileHandler", "FileWriter", "ModelCheckpoint", "PdfPages", "SummaryWriter",
    "TFRecordWriter", "TensorBoard", "TrainingArguments", "VideoWriter", "basicConfig", "open_memmap", "HDFStore",
})  # fmt: skip
STRICT: Final = re.compile(
    r"to_(?:csv|excel|feather|json|parquet|pickle)|save|savez|savez_compressed|savetxt|savefig"
    r"|dump|tofile|write_text|write_bytes"
)
OBJECT_FIRST: Final = frozenset(
    {"dill", "json", "marshal", "msgpack", "pickle", "cloudpickle", "toml", "tomllib", "yaml"}
)
UPDATES: Final = frozenset({"sqlite3.connect", "shelve.open", "dbm.open", "pandas.HDFStore"})
RUNS: Final = frozenset({
    "os.popen", "os.system", "subprocess.Popen", "subprocess.call", "subprocess.check_call",
    "subprocess.check_output", "subprocess.run",
})  # fmt: skip
READ_KEYWORDS: Final = re.compile(
    r"(?!.*(?:out|save|log|cache|dest|tmp|url))"
    r"(?:path|file|filename|fname|filepath|csv|data_files?|\w+_(?:file|path|filename))"
)
FOLDER_KEYWORDS: Final = frozenset({"data_dir", "directory", "image_dir", "img_dir", "root_dir"})
KEYWORDS: Final = (
    "path", "file", "filename", "fname", "filepath", "filepath_or_buffer", "path_or_buf", "path_or_buffer", "f", "fp",
    "io", "name", "root", "directory", "data_dir", "save_directory", "pretrained_model_name_or_path", "model_file",
    "uri", "src", "source", "database", "data_files", "log_dir", "logdir", "dirpath", "output_dir", "excel_writer",
    "pathname",
)  # fmt: skip
CACHES: Final[Mapping[str, str]] = {
    "CIFAR10": "cifar-10-batches-py", "CIFAR100": "cifar-100-python", "EMNIST": "EMNIST", "KMNIST": "KMNIST",
    "FashionMNIST": "FashionMNIST", "MNIST": "MNIST", "QMNIST": "QMNIST", "STL10": "stl10_binary",
}  # fmt: skip
"""Data sets of torchvision, and what they keep below their root."""
