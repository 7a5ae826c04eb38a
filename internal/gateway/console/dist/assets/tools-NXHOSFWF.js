/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-7MXAAMGG.js";import"./chunk-2U5VMJ47.js";import"./chunk-OF6TOZ55.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
