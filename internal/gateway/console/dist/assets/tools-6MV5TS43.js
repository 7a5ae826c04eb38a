/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-DMZGVQ4K.js";import"./chunk-CJLUIEKF.js";import"./chunk-3U6UAR4H.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
