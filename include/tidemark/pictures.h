/* Pictures people have: PNG and JPEG files, one folder per class. They are decoded as they are needed, by threads that load
 * batches, cut and resized to what the model takes, and normalised as torchvision's published weights expect it. */
#ifndef TIDEMARK_PICTURES_H
#define TIDEMARK_PICTURES_H

#include <tidemark/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One picture, to look at: the middle of it, seven eighths of the largest part that has the model's proportions, resized; all of it
 * if it has the model's size already. pixels: channels * height * width floats, row-major, (share of full - mean) / deviation
 * with ImageNet's figures. channels: 3, or 1 for grey. A file that cannot be decoded is TIDE_E_FORMAT; a format that this build
 * does not read is TIDE_E_UNSUPPORTED. */
TIDE_API tide_status tide_picture_read(const char *path, uint32_t channels, uint32_t height, uint32_t width,
                                       float *pixels);

/* FOLDER/CLASS/picture.png, or with pictures to test with FOLDER/train/CLASS/... and FOLDER/val/CLASS/... (or test). Classes are
 * numbered in the order of their names. Without pictures to test with every tenth is for that. */
typedef struct tide_picture_folder tide_picture_folder;

typedef struct tide_picture_folder_options {
    size_t size; /* sizeof(tide_picture_folder_options) */
    uint32_t channels, height, width;
    uint64_t seed; /* of crops and flips */
    /* To learn from, a part of the picture of random size and proportions is resized (Szegedy et al. 2014), and half of them are
     * flipped; by seed and the number of samples seen before. */
    bool no_augment;  /* as to look at instead */
    float least_area; /* the smallest part, as a share of the picture [0.08] */
    uint32_t threads; /* that decode; 0: one. Their number changes no sample */
} tide_picture_folder_options;
TIDE_API void tide_picture_folder_options_init(tide_picture_folder_options *options);
/* Is there a folder with a picture in it, as above? Names alone are looked at. */
TIDE_API bool tide_picture_folder_is(const char *path);
/* Lists the files; none is opened. */
TIDE_API tide_status tide_picture_folder_open(const char *path, const tide_picture_folder_options *options,
                                              tide_picture_folder **out);
TIDE_API void tide_picture_folder_close(tide_picture_folder *folder); /* NULL is fine */
TIDE_API uint32_t tide_picture_folder_classes(const tide_picture_folder *folder);
TIDE_API const char *tide_picture_folder_class(const tide_picture_folder *folder, uint32_t i); /* its name, or NULL */
TIDE_API const tide_data *tide_picture_folder_train(const tide_picture_folder *folder);
TIDE_API const tide_data *tide_picture_folder_test(const tide_picture_folder *folder);

#ifdef __cplusplus
}
#endif
#endif
