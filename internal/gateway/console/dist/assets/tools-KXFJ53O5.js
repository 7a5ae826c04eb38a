/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-HWL7INI3.js";import"./chunk-MZCC5XV4.js";import"./chunk-3MJ4CFTN.js";import"./chunk-GXWSIOA4.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
