"""Size and sha256 of the content of every file (of a `.gz`: decompressed)."""

PINS: dict[str, tuple[int, str]] = {
    "adult/adult.data": (
        3_974_305,
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "adult/adult.test": (
        2_003_153,
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
    "bank-marketing/bank-additional-full.csv.gz": (
        5_834_924,
        "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    ),
    "credit-default/UCI_Credit_Card.csv": (
        2_867_208,
        "f7b7d22d1f8dd27dadb25d4b78d8a4ae7c441ab6cc12d1ea58c0efc54d4d1788",
    ),
    "fashion-mnist/t10k-images-idx3-ubyte.gz": (
        7_840_016,
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    "fashion-mnist/t10k-labels-idx1-ubyte.gz": (
        10_008,
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    "fashion-mnist/train-images-idx3-ubyte.gz": (
        47_040_016,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    "fashion-mnist/train-labels-idx1-ubyte.gz": (
        60_008,
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    "fmi/FMI_data.csv": (
        1_259_176,
        "933843e9e575ca1d0ee5860ad32ee14bf24a78623910eab3e3b1d047792b8b93",
    ),
    "fmi/FMI_data_2025.csv": (
        217_671,
        "b96b79f73b232c714ea6be585402fbc0d4891663e1d6f16d570ed291f3aeb336",
    ),
    "fmi/daily_records.csv": (
        464_857,
        "b8f9c49d66a71d155b10a27823a4b23fab0bc62c2b09c7b0711349b15d46a180",
    ),
    "fmi/fmi_daily_aug.csv": (
        378_405,
        "d08ca50e5a8bd475f8c69a0d4899cd7adf146bd5fa9e8356924309eada7b7ee3",
    ),
    "fmi/fmi_daily_jan.csv": (
        380_251,
        "fddae9cedc4b40b5b71e4e0f1ad99e920d2d453d7230cf05179f4f13cdb9bb2c",
    ),
    "fmi/fmi_stations.csv": (
        7_556,
        "74a0d41f4f16e3a4124b0859d0f390e564c60658c1edd4b683f274f0fd70826b",
    ),
    "fmi/gd_helsinki.csv": (
        14_783,
        "214c6ee941f506673aadc0a0a1e52262bb47cdd597662f0ea3f1b6965ff2c8ca",
    ),
    "fmi/weather_data.csv": (
        73_569,
        "364a454156c46437751a152663a4bf979de580f85308bf7a4d2726c5845a351e",
    ),
    "heart-disease/processed.cleveland.data": (
        18_461,
        "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    ),
    "heart-disease/processed.hungarian.data": (
        10_263,
        "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    ),
    "heart-disease/processed.switzerland.data": (
        4_109,
        "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    ),
    "heart-disease/processed.va.data": (
        6_737,
        "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (
        7_840_016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": (
        10_008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "mnist/train-images-idx3-ubyte.gz": (
        47_040_016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "mnist/train-labels-idx1-ubyte.gz": (
        60_008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "parkinsons/parkinsons_updrs.data": (
        911_261,
        "f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
    ),
    "shakespeare/input.txt": (
        1_115_394,
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
}
